//===- OutlineTasks.cpp - Parallel loops into task functions ----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "../Emitter/LinearLoop.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAOUTLINETASKSPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

/// The runtime's entry: see pisa/Runtime/CpuRuntime.h.
static constexpr StringLiteral kParallelFor = "pisaParallelFor";

namespace {

class Outliner {
public:
  explicit Outliner(ModuleOp module)
      : module(module), converter(module.getContext()) {}

  LogicalResult outline(scf::ForallOp forall) {
    if (!forall.getOutputs().empty())
      return forall.emitOpError(
          "expected a bufferized loop to outline, but got "
          "shared outputs; run pisa-bufferize");
    if (!forall->getParentOfType<func::FuncOp>())
      return forall.emitOpError(
          "expected a loop inside a func.func to outline, but "
          "got one outside");
    ImplicitLocOpBuilder b(forall.getLoc(), forall);

    // Everything the body needs: its captures, and the loop's own bounds.
    // Constants are cheaper to make again than to pass.
    LinearLoop loop = LinearLoop::get(b, forall);
    llvm::SetVector<Value> captures = loop.getCaptures(forall);
    SmallVector<Value> constants, passed;
    for (Value value : captures)
      (matchPattern(value, m_Constant()) ? constants : passed).push_back(value);

    SmallVector<Type> fields;
    for (Value value : passed) {
      Type type = converter.convertType(value.getType());
      if (!type)
        return forall.emitOpError(
                   "expected captured values of a type that LLVM "
                   "has, but got ")
               << value.getType();
      fields.push_back(type);
    }
    auto structType = LLVM::LLVMStructType::getLiteral(b.getContext(), fields);
    func::FuncOp task = buildTask(forall, loop, structType, constants, passed);

    // The call: captures go to a struct on the stack of the enclosing function.
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value one =
        LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(1));
    Value frame = LLVM::AllocaOp::create(b, pointer, structType, one);
    for (auto [i, value] : llvm::enumerate(passed)) {
      Value field = LLVM::GEPOp::create(b, pointer, structType, frame,
                                        ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
      LLVM::StoreOp::create(b, toLLVM(b, value, fields[i]), field);
    }
    declareRuntime();
    Value function =
        func::ConstantOp::create(b, task.getFunctionType(), task.getSymName());
    Value address =
        UnrealizedConversionCastOp::create(b, pointer, function).getResult(0);
    Value count = arith::IndexCastOp::create(b, b.getI64Type(), loop.total);
    func::CallOp::create(b, kParallelFor, TypeRange{},
                         ValueRange{address, frame, count});
    forall.erase();
    return success();
  }

private:
  static Value toLLVM(ImplicitLocOpBuilder &b, Value value, Type type) {
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  }

  func::FuncOp buildTask(scf::ForallOp forall, const LinearLoop &linear,
                         LLVM::LLVMStructType structType,
                         ArrayRef<Value> constants, ArrayRef<Value> passed) {
    auto parent = forall->getParentOfType<func::FuncOp>();
    ImplicitLocOpBuilder b(forall.getLoc(), module.getContext());
    b.setInsertionPoint(parent);
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Type i64 = b.getI64Type();
    std::string name;
    do
      name = (parent.getName() + "_task" + Twine(numTasks++)).str();
    while (module.lookupSymbol(name));
    auto task = func::FuncOp::create(
        b, name, b.getFunctionType({pointer, i64, i64}, {}));
    task.setPrivate();
    Block *entry = task.addEntryBlock();
    b.setInsertionPointToStart(entry);

    IRMapping mapping;
    for (Value value : constants)
      mapping.map(value, b.clone(*value.getDefiningOp())->getResult(0));
    for (auto [i, value] : llvm::enumerate(passed)) {
      Value field =
          LLVM::GEPOp::create(b, pointer, structType, entry->getArgument(0),
                              ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
      Value loaded = LLVM::LoadOp::create(b, structType.getBody()[i], field);
      mapping.map(value,
                  UnrealizedConversionCastOp::create(b, value.getType(), loaded)
                      .getResult(0));
    }
    Value begin =
        arith::IndexCastOp::create(b, b.getIndexType(), entry->getArgument(1));
    Value end =
        arith::IndexCastOp::create(b, b.getIndexType(), entry->getArgument(2));
    auto loop =
        scf::ForOp::create(b, begin, end, arith::ConstantIndexOp::create(b, 1));
    func::ReturnOp::create(b);

    b.setInsertionPointToStart(loop.getBody());
    linear.mapIterators(b, forall, loop.getInductionVar(), mapping);
    for (Operation &op : forall.getBody()->without_terminator())
      b.clone(op, mapping);

    // Fixed-size stack buffers: once a call, not once an iteration. The frames
    // of loops inside this one are among them.
    task.walk([&](Operation *op) {
      if (isa<memref::AllocaOp>(op) && op->getNumOperands() == 0)
        op->moveBefore(entry, entry->begin());
      if (auto frame = dyn_cast<LLVM::AllocaOp>(op)) {
        Operation *size = frame.getArraySize().getDefiningOp();
        if (!size || !size->hasTrait<OpTrait::ConstantLike>())
          return;
        frame->moveBefore(entry, entry->begin());
        size->moveBefore(frame);
      }
    });
    return task;
  }

  void declareRuntime() {
    if (module.lookupSymbol(kParallelFor))
      return;
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type =
        b.getFunctionType({pointer, pointer, b.getI64Type()}, TypeRange{});
    func::FuncOp::create(b, module.getLoc(), kParallelFor, type).setPrivate();
  }

  ModuleOp module;
  LLVMTypeConverter converter;
  unsigned numTasks = 0;
};

struct OutlineTasks : pisa::impl::PisaOutlineTasksPassBase<OutlineTasks> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation().walk([&](scf::ForallOp loop) { loops.push_back(loop); });
    Outliner outliner(getOperation());
    for (scf::ForallOp loop : loops) {
      if (failed(outliner.outline(loop)))
        return signalPassFailure();
      ++numTasks;
    }
  }
};
} // namespace
