//===- Decompose.cpp - Problem ops into phases ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISADECOMPOSEPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {
struct Decompose : pisa::impl::PisaDecomposePassBase<Decompose> {
  using PisaDecomposePassBase::PisaDecomposePassBase;

  void runOnOperation() override {
    SmallVector<linalg::AggregatedOpInterface> problems;
    getOperation()->walk([&](linalg::AggregatedOpInterface op) {
      if (isa<BuildPyramidOp, RouteOp, AttentionOp>(op))
        problems.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::AggregatedOpInterface op : problems) {
      rewriter.setInsertionPoint(op);
      if (auto attention = dyn_cast<AttentionOp>(op.getOperation());
          attention && checkInputs)
        CheckIndicesOp::create(rewriter, op.getLoc(), attention.getIndices());
      FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
      ++numProblems;
    }
  }
};
} // namespace
