//===- Score.cpp - score_block into loops over vectors ----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// log2 of the sum of 2^s over terms read by `term`; the largest term itself
/// where that is not finite (docs/Spec.md section 2: an empty sum is -inf).
struct ScoreBlock : OpRewritePattern<ScoreBlockOp> {
  using OpRewritePattern::OpRewritePattern;

  /// One term per lane: lanes are nodes, the sum runs over their children.
  static Value lseAcrossChildren(Emitter &e, Value s, Value row, int64_t group,
                                 int64_t nodes) {
    auto child = [&](int64_t c) {
      return e.loadVector(s, {row, e.idx(c * nodes)}, nodes);
    };
    Value max = child(0);
    for (int64_t c = 1; c < group; ++c)
      max = arith::MaximumFOp::create(e, max, child(c));
    Value sum = e.splat(0, nodes);
    for (int64_t c = 0; c < group; ++c)
      sum = arith::AddFOp::create(
          e, sum, e.exp2(arith::SubFOp::create(e, child(c), max)));
    Value finite = arith::AddFOp::create(e, max, e.log2(sum));
    return arith::SelectOp::create(e, e.isFinite(max), finite, max);
  }

  /// One term: the sum runs over all columns, `columnTile` at a time.
  static Value lseAcrossColumns(Emitter &e, Value s, Value row, int64_t columns,
                                int64_t columnTile) {
    Value max = e.f32(e.negInf());
    for (Piece piece : getPieces(columns, columnTile))
      max = arith::MaximumFOp::create(
          e, max,
          e.reduceMax(
              e.loadVector(s, {row, e.idx(piece.offset)}, piece.width)));
    Value sum = e.f32(0);
    for (Piece piece : getPieces(columns, columnTile)) {
      Value lanes = e.loadVector(s, {row, e.idx(piece.offset)}, piece.width);
      Value shifted =
          arith::SubFOp::create(e, lanes, e.broadcast(max, piece.width));
      sum = arith::AddFOp::create(e, sum, e.reduceAdd(e.exp2(shifted)));
    }
    Value finite = arith::AddFOp::create(e, max, e.log2(sum));
    return arith::SelectOp::create(e, e.isFinite(max), finite, max);
  }

  LogicalResult matchAndRewrite(ScoreBlockOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value lists = op.getLists(), scores = op.getScores();
    int64_t n = cast<MemRefType>(lists.getType()).getDimSize(3);
    int64_t limit = op.getLimit();
    if (limit >= n) {
      // No list is long enough to drop anything.
      rewriter.eraseOp(op);
      return success();
    }
    auto queriesType = cast<MemRefType>(op.getQueries().getType());
    int64_t paddedRows = queriesType.getDimSize(1), rowTile = op.getRowTile();
    int64_t columns = cast<MemRefType>(op.getColumns().getType()).getDimSize(1);
    int64_t nodes = op.getNodes(), queryBlock = op.getQueryBlock();
    Value zero = e.idx(0);
    Value s = e.scratch({rowTile, columns}, e.getF32Type());
    Value totals = e.scratch({nodes}, e.getF32Type());
    Value ln2 = e.f32(static_cast<float>(M_LN2));

    e.loop(zero, e.dim(lists, 2), 1, [&](Value j) {
      Value last = e.load(lists, {zero, zero, j, e.idx(limit)});
      Value listed = e.both(e.cmp(arith::CmpIPredicate::sge, last, e.i32(0)),
                            e.anyEntry(lists, j, nodes, op.getBlock()));
      e.when(listed, [&] {
        // Rows of queries past the sequence's end count for nothing.
        Value queries =
            e.min(e.sub(op.getNumQueries(), e.mul(j, e.idx(queryBlock))),
                  e.idx(queryBlock));
        Value realRows = e.mul(queries, e.idx(op.getHeads()));
        e.storeVector(e.splat(0, nodes), totals, zero);
        e.loop(zero, e.idx(paddedRows), rowTile, [&](Value row0) {
          emitScores(e, op.getQueries(), j, row0, rowTile, op.getColumnTile(),
                     op.getColumns(), op.getBias(), s);
          Value end = e.min(e.sub(realRows, row0), e.idx(rowTile));
          e.loop(zero, end, 1, [&](Value r) {
            Value term = nodes == 1
                             ? e.broadcast(lseAcrossColumns(e, s, r, columns,
                                                            op.getColumnTile()),
                                           1)
                             : lseAcrossChildren(e, s, r, op.getGroup(), nodes);
            Value total = e.loadVector(totals, zero, nodes);
            e.storeVector(arith::AddFOp::create(e, total, term), totals, zero);
          });
        });
        e.loop(zero, e.idx(n), 1, [&](Value i) {
          Value entry = e.toIndex(e.load(lists, {zero, zero, j, i}));
          Value valid = e.cmp(arith::CmpIPredicate::sge, entry, zero);
          Value mine = e.both(valid, e.cmp(arith::CmpIPredicate::eq,
                                           e.div(entry, nodes), op.getBlock()));
          e.when(mine, [&] {
            Value total = e.load(totals, e.rem(entry, nodes));
            e.store(arith::MulFOp::create(e, total, ln2), scores,
                    {zero, zero, j, i});
          });
        });
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateScorePatterns(RewritePatternSet &patterns) {
  patterns.add<ScoreBlock>(patterns.getContext());
}
