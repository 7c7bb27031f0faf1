//===- PisaToGPU.cpp - Tile ops of GPU tasks into warps' code --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "Warp.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_CONVERTPISATOGPUPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {
struct ConvertPisaToGPU
    : pisa::impl::ConvertPisaToGPUPassBase<ConvertPisaToGPU> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> tasks;
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
      tasks.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ForallOp loop : tasks) {
      if (failed(convert(loop)))
        return signalPassFailure();
      // LLVM has no rounding divisions. (Upstream's pass would expand maximumf
      // too, which is one instruction here.)
      RewritePatternSet divisions(&getContext());
      arith::populateCeilFloorDivExpandOpsPatterns(divisions);
      walkAndApplyPatterns(loop, std::move(divisions));
    }
  }

  /// An accumulator's rows become fragments, one a row tile of a warp.
  static void makeFragments(scf::ForallOp loop, TaskContext &task) {
    SmallVector<memref::AllocaOp> buffers;
    loop.walk([&](memref::AllocaOp op) {
      auto space = dyn_cast_if_present<gpu::AddressSpaceAttr>(
          op.getType().getMemorySpace());
      if (space && space.getValue() == gpu::AddressSpace::Private)
        buffers.push_back(op);
    });
    for (memref::AllocaOp buffer : buffers) {
      MemRefType type = buffer.getType();
      int64_t tiles = type.getDimSize(0) * type.getDimSize(1) / kRows;
      int64_t columns = type.getRank() == 3 ? type.getDimSize(2) : 1;
      auto fragment = VectorType::get({kRows, columns}, type.getElementType());
      OpBuilder b(buffer);
      task.fragments[buffer] = memref::AllocaOp::create(
          b, buffer.getLoc(),
          MemRefType::get(
              {static_cast<int64_t>(llvm::divideCeil(tiles, task.numWarps))},
              fragment));
    }
  }

  static LogicalResult convert(scf::ForallOp loop) {
    auto numWarps = loop->getAttrOfType<IntegerAttr>(kNumWarpsAttr);
    if (!numWarps)
      return loop.emitOpError("expected 'pisa.num_warps' to convert, but got "
                              "none; run pisa-assign-memory-spaces");
    TaskContext task;
    task.numWarps = numWarps.getInt();
    makeFragments(loop, task);
    RewritePatternSet patterns(loop.getContext());
    populateGPUPackPatterns(patterns, task);
    populateGPUListPatterns(patterns, task);
    populateGPUEntryPatterns(patterns, task);
    populateGPUCheckPatterns(patterns, task);
    populateGPUScoreEntriesPatterns(patterns, task);
    populateGPUAttendEntriesPatterns(patterns, task);
    populateGPUPoolPatterns(patterns, task);
    populateGPUScorePatterns(patterns, task);
    populateGPUAttendPatterns(patterns, task);
    walkAndApplyPatterns(loop, std::move(patterns));

    WalkResult converted = loop.walk([](Operation *op) {
      if (!isa<PisaDialect>(op->getDialect()) &&
          !isa<linalg::LinalgDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("expected an op on the buffers of one GPU task; run "
                      "pisa-assign-memory-spaces");
      return WalkResult::interrupt();
    });
    if (converted.wasInterrupted())
      return failure();
    // What was cut from accumulators, and they themselves.
    for (auto [buffer, fragment] : task.fragments) {
      SmallVector<Operation *> dead = {buffer.getDefiningOp()};
      for (size_t i = 0; i < dead.size(); ++i)
        llvm::append_range(dead, dead[i]->getUsers());
      for (Operation *op : llvm::reverse(dead))
        op->erase();
    }
    return success();
  }
};
} // namespace
