//===- PisaToVector.cpp - Tile ops into loops over vectors ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_CONVERTPISATOVECTORPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {
struct ConvertPisaToVector
    : pisa::impl::ConvertPisaToVectorPassBase<ConvertPisaToVector> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populatePackPatterns(patterns);
    populateListPatterns(patterns);
    populatePoolPatterns(patterns);
    populateScorePatterns(patterns);
    populateAttendPatterns(patterns);

    // The patterns index buffers: tensors must be refused before they run.
    WalkResult ready = getOperation()->walk([](Operation *op) {
      if (!isa<PisaDialect>(op->getDialect()))
        return WalkResult::advance();
      if (llvm::any_of(op->getOperandTypes(),
                       [](Type type) { return isa<TensorType>(type); })) {
        op->emitOpError("expected memrefs to convert, but got tensors; run "
                        "pisa-bufferize");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (ready.wasInterrupted())
      return signalPassFailure();

    walkAndApplyPatterns(getOperation(), std::move(patterns));

    WalkResult converted = getOperation()->walk([](Operation *op) {
      if (!isa<PisaDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("expected a tile op of one task, whose columns are whole "
                      "vectors of 16; run pisa-tile-and-fuse and "
                      "pisa-decompose-tiles");
      return WalkResult::interrupt();
    });
    if (converted.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
