//===- Attend.cpp - Attention tile ops into loops over vectors --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

namespace {

struct AttendBlock : OpRewritePattern<AttendBlockOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttendBlockOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    ParamsAttr params = op.getParams();
    Value lists = op.getLists();
    int64_t paddedRows =
        cast<MemRefType>(op.getQueries().getType()).getDimSize(1);
    int64_t columns = cast<MemRefType>(op.getColumns().getType()).getDimSize(1);
    int64_t rowTile = op.getRowTile();
    Value zero = e.idx(0);
    Value s = e.scratch({rowTile, columns}, e.getF32Type());
    Value alphas = e.scratch({rowTile}, e.getF32Type());
    Value firstKey = e.add(e.mul(op.getBlock(), e.idx(params.getBlockSize())),
                           e.idx(op.getFirstKey()));
    Value start;
    if (params.getCausal())
      start =
          e.add(e.toIndex(e.load(op.getQStart(), zero)), op.getQueryOffset());

    e.loop(zero, e.dim(lists, 2), 1, [&](Value j) {
      e.when(e.anyEntry(lists, j, 1, op.getBlock()), [&] {
        e.loop(zero, e.idx(paddedRows), rowTile, [&](Value row0) {
          emitScores(e, op.getQueries(), j, row0, rowTile, op.getColumnTile(),
                     op.getColumns(), op.getBias(), s);
          e.loop(zero, e.idx(rowTile), 1, [&](Value r) {
            Value visible; // keys of the block that this row may see
            if (start) {
              Value query = e.add(e.mul(j, e.idx(params.getQueryBlock())),
                                  e.div(e.add(row0, r), op.getHeads()));
              Value position = e.add(start, query);
              visible = e.add(e.sub(position, firstKey), e.idx(1));
            }
            softmaxStep(e, op, s, alphas, j, e.add(row0, r), r, columns,
                        visible);
          });
          accumulate(e, op, s, alphas, j, row0);
        });
      });
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// Moves row `row`'s maximum and sum over the scores in s[r], and leaves the
  /// probabilities there and the old state's factor in alphas[r].
  static void softmaxStep(Emitter &e, AttendBlockOp op, Value s, Value alphas,
                          Value j, Value row, Value r, int64_t columns,
                          Value visible) {
    SmallVector<Piece> pieces = getPieces(columns, op.getColumnTile());
    // Scores of the row with keys after the query masked to -inf.
    auto masked = [&](Piece piece) -> Value {
      Value lanes = e.loadVector(s, {r, e.idx(piece.offset)}, piece.width);
      if (!visible)
        return lanes;
      Value left = e.sub(visible, e.idx(piece.offset));
      // Clamped, so that any distance fits in i32.
      left = e.max(e.min(left, e.idx(piece.width)), e.idx(0));
      Value mask = e.cmp(arith::CmpIPredicate::slt, e.iota(piece.width),
                         e.broadcast(e.toI32(left), piece.width));
      return arith::SelectOp::create(e, mask, lanes,
                                     e.splat(e.negInf(), piece.width));
    };
    Value oldMax = e.load(op.getMax(), {j, row});
    Value newMax = oldMax;
    for (Piece piece : pieces)
      newMax = arith::MaximumFOp::create(e, newMax, e.reduceMax(masked(piece)));
    // A row that has seen nothing yet: -inf - -inf would be NaN.
    Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, newMax,
                                       e.f32(e.negInf()));
    Value reference = arith::SelectOp::create(e, none, e.f32(0), newMax);
    Value sum = e.f32(0);
    for (Piece piece : pieces) {
      Value shifted = arith::SubFOp::create(
          e, masked(piece), e.broadcast(reference, piece.width));
      Value p = e.exp2(shifted);
      e.storeVector(p, s, {r, e.idx(piece.offset)});
      sum = arith::AddFOp::create(e, sum, e.reduceAdd(p));
    }
    Value alpha = e.exp2(arith::SubFOp::create(e, oldMax, reference));
    Value oldSum = e.load(op.getSum(), {j, row});
    e.store(e.fma(oldSum, alpha, sum), op.getSum(), {j, row});
    e.store(newMax, op.getMax(), {j, row});
    e.store(alpha, alphas, r);
  }

  /// acc = alpha acc + P V for the rows of one row tile.
  static void accumulate(Emitter &e, AttendBlockOp op, Value s, Value alphas,
                         Value j, Value row0) {
    int64_t rowTile = op.getRowTile();
    auto valuesType = cast<MemRefType>(op.getValues().getType());
    int64_t blockSize = valuesType.getDimSize(0);
    for (Piece piece :
         getPieces(valuesType.getDimSize(1), op.getColumnTile())) {
      Value column = e.idx(piece.offset);
      SmallVector<Value> acc;
      for (int64_t r = 0; r < rowTile; ++r) {
        Value old = e.loadVector(
            op.getAcc(), {j, e.add(row0, e.idx(r)), column}, piece.width);
        Value alpha = e.load(alphas, e.idx(r));
        acc.push_back(
            arith::MulFOp::create(e, old, e.broadcast(alpha, piece.width)));
      }
      acc = e.loop(
          e.idx(0), e.idx(blockSize), 1, acc, [&](Value c, ValueRange acc) {
            Value v = e.loadVector(op.getValues(), {c, column}, piece.width);
            SmallVector<Value> next;
            for (int64_t r = 0; r < rowTile; ++r) {
              Value p = e.load(s, {e.idx(r), c});
              next.push_back(e.fma(e.broadcast(p, piece.width), v, acc[r]));
            }
            return next;
          });
      for (int64_t r = 0; r < rowTile; ++r)
        e.storeVector(acc[r], op.getAcc(), {j, e.add(row0, e.idx(r)), column});
    }
  }
};

struct FinishAttention : OpRewritePattern<FinishAttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(FinishAttentionOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value o = op.getO();
    auto type = cast<MemRefType>(o.getType());
    int64_t heads = type.getDimSize(1), valueDim = type.getDimSize(3);
    int64_t queryBlock = op.getQueryBlock();
    Value numQueries = e.dim(o, 2), zero = e.idx(0);
    Value negInf = e.f32(e.negInf());
    Value ln2 = e.f32(static_cast<float>(M_LN2));
    SmallVector<Piece> pieces = getPieces(valueDim, 16);

    e.loop(zero, e.dim(op.getAcc(), 0), 1, [&](Value j) {
      e.loop(zero, e.idx(queryBlock * heads), 1, [&](Value r) {
        Value query = e.add(e.mul(j, e.idx(queryBlock)), e.div(r, heads));
        Value head = e.rem(r, heads);
        e.when(e.cmp(arith::CmpIPredicate::slt, query, numQueries), [&] {
          Value max = e.load(op.getMax(), {j, r});
          Value sum = e.load(op.getSum(), {j, r});
          Value none =
              arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, max, negInf);
          Value factor = arith::DivFOp::create(e, e.f32(1), sum);
          for (Piece piece : pieces) {
            Value acc = e.loadVector(op.getAcc(), {j, r, e.idx(piece.offset)},
                                     piece.width);
            Value out =
                arith::MulFOp::create(e, acc, e.broadcast(factor, piece.width));
            out =
                arith::SelectOp::create(e, none, e.splat(0, piece.width), out);
            e.storeF32(out, o, {zero, head, query, e.idx(piece.offset)});
          }
          if (Value lse = op.getLse()) {
            Value value = arith::MulFOp::create(
                e, arith::AddFOp::create(e, max, e.log2(sum)), ln2);
            // An infinite maximum is the answer; its sum is NaN or 0.
            Value infinite = arith::CmpFOp::create(
                e, arith::CmpFPredicate::OEQ, math::AbsFOp::create(e, max),
                e.f32(std::numeric_limits<float>::infinity()));
            value = arith::SelectOp::create(e, infinite, max, value);
            e.store(value, lse, {zero, head, query});
          }
        });
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateAttendPatterns(RewritePatternSet &patterns) {
  patterns.add<AttendBlock, FinishAttention>(patterns.getContext());
}
