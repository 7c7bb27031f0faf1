//===- Softmax.cpp - Attention of 16 rows, in registers -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace mlir::pisa;

Value Softmax::step(WarpEmitter &e, Value scores, int64_t columns,
                    int64_t valueDim) {
  Value newMax = e.rowMax(scores);
  if (max)
    newMax = arith::MaximumFOp::create(e, max, newMax);
  // A row that has seen nothing yet: -inf - -inf would be NaN.
  Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, newMax,
                                     e.constantFragment(e.negInf(), 1));
  Value reference =
      arith::SelectOp::create(e, none, e.constantFragment(0, 1), newMax);
  Value p =
      e.exp2(arith::SubFOp::create(e, scores, e.spreadTo(reference, columns)));
  Value added = e.rowSum(p);
  if (max) {
    Value alpha = e.exp2(arith::SubFOp::create(e, max, reference));
    Value old = arith::MulFOp::create(e, sum, alpha);
    sum = arith::AddFOp::create(e, old, added);
    acc = arith::MulFOp::create(e, acc, e.spreadTo(alpha, valueDim));
  } else {
    sum = added;
    acc = e.constantFragment(0, valueDim);
  }
  max = newMax;
  return p;
}

void Softmax::attend(WarpEmitter &e, Value rows, Value keys, Value values,
                     Value scale, int64_t blockSize,
                     function_ref<Value(Value, Piece)> mask) {
  int64_t depth = cast<VectorType>(rows.getType()).getDimSize(1);
  auto valuesType = cast<MemRefType>(values.getType());
  int64_t valueDim = valuesType.getDimSize(1) - kRows / 2;
  for (Piece piece : getPieces(blockSize, getScoreTile(valueDim))) {
    Value k = e.loadFragment(keys, {e.idx(piece.offset), e.idx(0)}, piece.width,
                             depth);
    Value s = e.multiply(rows, k, e.constantFragment(0, piece.width),
                         /*transposed=*/true);
    s = arith::MulFOp::create(e, s, e.spread(scale, piece.width));
    Value p = step(e, mask(s, piece), piece.width, valueDim);
    auto type =
        cast<VectorType>(p.getType()).clone(valuesType.getElementType());
    Value weights = arith::TruncFOp::create(e, type, p);
    Value v = e.loadFragment(values, {e.idx(piece.offset), e.idx(0)},
                             piece.width, valueDim);
    acc = e.multiply(weights, v, acc, /*transposed=*/false);
  }
}

Value Softmax::normalized(WarpEmitter &e, int64_t valueDim, Type type) const {
  Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, max,
                                     e.constantFragment(e.negInf(), 1));
  Value factor = arith::DivFOp::create(e, e.constantFragment(1, 1), sum);
  Value out = arith::MulFOp::create(e, acc, e.spreadTo(factor, valueDim));
  out = arith::SelectOp::create(e, e.spreadTo(none, valueDim),
                                e.constantFragment(0, valueDim), out);
  if (type.isF32())
    return out;
  return arith::TruncFOp::create(e, e.fragmentType(valueDim, type), out);
}

Value Softmax::lse2(WarpEmitter &e) const {
  Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, max,
                                     e.constantFragment(e.negInf(), 1));
  Value infinite = arith::CmpFOp::create(
      e, arith::CmpFPredicate::OEQ, max,
      e.constantFragment(std::numeric_limits<float>::infinity(), 1));
  infinite = arith::OrIOp::create(e, infinite, none);
  Value finite = arith::AddFOp::create(e, max, e.log2(sum));
  return arith::SelectOp::create(e, infinite, max, finite);
}
