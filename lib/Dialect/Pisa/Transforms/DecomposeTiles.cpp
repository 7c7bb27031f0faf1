//===- DecomposeTiles.cpp - Phases of one task into tile ops ----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISADECOMPOSETILESPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {
struct DecomposeTiles : pisa::impl::PisaDecomposeTilesPassBase<DecomposeTiles> {
  void runOnOperation() override {
    SmallVector<linalg::AggregatedOpInterface> phases;
    getOperation()->walk([&](linalg::AggregatedOpInterface op) {
      if (isa<RouteUpperOp, ScoreBlocksOp, PrescoreBlocksOp, AttendTilesOp>(op))
        phases.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::AggregatedOpInterface op : phases) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
    }
    // The config has done its work; phases that are tile ops themselves lose
    // it.
    getOperation()->walk([](PisaOpInterface op) {
      op->removeDiscardableAttr("lowering_config");
    });
  }
};
} // namespace
