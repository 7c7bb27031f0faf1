//===- Bufferize.cpp - One-shot bufferization as our kernels need it -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISABUFFERIZEPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::bufferization;

/// A memref of any strides and offset, but unit stride in the last dimension.
static BufferLikeType getArgumentType(TensorLikeType type,
                                      Attribute memorySpace, func::FuncOp,
                                      const BufferizationOptions &) {
  auto tensorType = cast<RankedTensorType>(type);
  int64_t rank = tensorType.getRank();
  SmallVector<int64_t> strides(rank, ShapedType::kDynamic);
  if (rank > 0)
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return cast<BufferLikeType>(MemRefType::get(
      tensorType.getShape(), tensorType.getElementType(), layout, memorySpace));
}

static Value skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  return value;
}

/// The buffer behind a value: loops carry the buffers that they write.
static Value getCarriedBuffer(Value value) {
  while (true) {
    value = skipCasts(value);
    auto loop = value.getDefiningOp<scf::ForOp>();
    if (!loop)
      return value;
    unsigned i = cast<OpResult>(value).getResultNumber();
    if (skipCasts(loop.getYieldedValues()[i]) != loop.getRegionIterArgs()[i])
      return value;
    value = loop.getInitArgs()[i];
  }
}

/// A result that is one of the function's own arguments is in the caller's
/// hands already; it is dropped.
static void dropReturnedArguments(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return;
  auto returnOp = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  BitVector dropped(returnOp.getNumOperands());
  for (auto [i, value] : llvm::enumerate(returnOp.getOperands())) {
    value = getCarriedBuffer(value);
    if (isa<MemRefType>(value.getType()) && isa<BlockArgument>(value))
      dropped.set(i);
  }
  returnOp->eraseOperands(dropped);
  (void)func.eraseResults(dropped);
}

namespace {
struct Bufferize : pisa::impl::PisaBufferizePassBase<Bufferize> {
  void runOnOperation() override {
    WalkResult unranked = getOperation().walk([](func::FuncOp func) {
      for (Type type : func.getArgumentTypes())
        if (isa<UnrankedTensorType>(type)) {
          func.emitOpError("expected ranked tensor arguments, but got ")
              << type;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (unranked.wasInterrupted())
      return signalPassFailure();

    OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.functionArgTypeConverterFn = getArgumentType;
    options.inferFunctionResultLayout = true;
    BufferizationState state;
    if (failed(runOneShotModuleBufferize(getOperation(), options, state)))
      return signalPassFailure();

    // Callers inside the module would have to be rewritten too.
    SymbolTableCollection symbols;
    SymbolUserMap users(symbols, getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (users.getUsers(func).empty())
        dropReturnedArguments(func);
  }
};
} // namespace
