//===- OutlineKernels.cpp - Tasks into kernels and launches -----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "../Emitter/LinearLoop.h"

#include "pisa/Dialect/Pisa/Transforms/TaskMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAOUTLINEKERNELSPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// Code that only computes sizes: a kernel may do it again.
bool isCheap(Operation *op) {
  if (!op)
    return false;
  auto dim = dyn_cast<memref::DimOp>(op);
  return dim ? dim.getConstantIndex().has_value()
             : matchPattern(op, m_Constant());
}

struct OutlineKernels : pisa::impl::PisaOutlineKernelsPassBase<OutlineKernels> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> tasks;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForallOp task) {
      tasks.push_back(task);
      return WalkResult::skip();
    });
    if (tasks.empty())
      return;
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    kernels = gpu::GPUModuleOp::create(b, getOperation().getLoc(), "kernels");
    getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                            b.getUnitAttr());
    for (scf::ForallOp task : tasks)
      if (failed(outline(task)))
        return signalPassFailure();
  }

  LogicalResult outline(scf::ForallOp task) {
    auto warps = task->getAttrOfType<IntegerAttr>(kNumWarpsAttr);
    auto shared = task->getAttrOfType<IntegerAttr>(kSharedBytesAttr);
    if (!warps || !shared)
      return task.emitOpError("expected 'pisa.num_warps' and "
                              "'pisa.shared_bytes' to outline, but got none; "
                              "run pisa-assign-memory-spaces");
    ImplicitLocOpBuilder b(task.getLoc(), task);
    LinearLoop loop = LinearLoop::get(b, task);
    llvm::SetVector<Value> captures = loop.getCaptures(task);
    // Sizes of buffers come with the buffers.
    SmallVector<Value> again, passed;
    llvm::SetVector<Value> needed;
    for (Value value : captures) {
      Operation *op = value.getDefiningOp();
      if (!isCheap(op)) {
        needed.insert(value);
        continue;
      }
      again.push_back(value);
      if (auto dim = dyn_cast<memref::DimOp>(op))
        needed.insert(dim.getSource());
    }
    passed.assign(needed.begin(), needed.end());

    auto parent = task->getParentOfType<func::FuncOp>();
    std::string name = (parent.getName() + "_kernel" + Twine(next++)).str();
    SmallVector<Type> types = llvm::to_vector(ValueRange(passed).getTypes());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(kernels.getBody());
    auto kernel =
        gpu::GPUFuncOp::create(b, name, b.getFunctionType(types, TypeRange{}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    int32_t threads = static_cast<int32_t>(warps.getInt() * 32);
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
    if (auto blocks = task->getAttrOfType<IntegerAttr>(kMinBlocksAttr))
      kernel->setAttr("nvvm.minctasm", b.getI32IntegerAttr(blocks.getInt()));
    b.setInsertionPointToStart(&kernel.getBody().front());
    IRMapping mapping;
    for (auto [value, argument] : llvm::zip(passed, kernel.getArguments()))
      mapping.map(value, argument);
    for (Value value : again) {
      auto dim = value.getDefiningOp<memref::DimOp>();
      mapping.map(value, dim ? Value(memref::DimOp::create(
                                   b, mapping.lookup(dim.getSource()),
                                   *dim.getConstantIndex()))
                             : b.clone(*value.getDefiningOp())->getResult(0));
    }

    loop.mapIterators(b, task, gpu::BlockIdOp::create(b, gpu::Dimension::x),
                      mapping);
    for (Operation &op : task.getBody()->without_terminator())
      b.clone(op, mapping);
    gpu::ReturnOp::create(b);

    b.setInsertionPoint(task);
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value size = arith::ConstantIndexOp::create(b, threads);
    Value bytes = arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(shared.getInt())));
    gpu::LaunchFuncOp::create(b, kernel, gpu::KernelDim3{loop.total, one, one},
                              gpu::KernelDim3{size, one, one}, bytes, passed);
    task.erase();
    ++numKernels;
    return success();
  }

  gpu::GPUModuleOp kernels;
  unsigned next = 0;
};
} // namespace
