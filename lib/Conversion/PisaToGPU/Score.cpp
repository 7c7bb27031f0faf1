//===- Score.cpp - score_block into matrix products -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

/// Columns whose scores a warp holds at a time: 32 registers a lane.
static constexpr int64_t kColumnTile = 64;

namespace {

/// A running log2 of a sum of powers of two, elementwise: largest exponent and
/// sum relative to it.
struct Lse {
  Value max, sum;

  /// The largest exponent itself where that is not finite (docs/Spec.md
  /// section 2: an empty sum is -inf).
  Value finish(WarpEmitter &e) const {
    Value finite = arith::AddFOp::create(e, max, e.log2(sum));
    return arith::SelectOp::create(e, e.isFinite(max), finite, max);
  }
};

struct ScoreBlock : TaskPattern<ScoreBlockOp> {
  using TaskPattern::TaskPattern;

  /// Scores of `n` columns from `first`, in base 2.
  static Value scoresOf(WarpEmitter &e, ScoreBlockOp op, Value rows,
                        Value columns, Value bias, Value scale, int64_t first,
                        int64_t n) {
    int64_t depth = e.staticDim(op.getQueries(), 2);
    int64_t parts = e.staticDim(op.getColumns(), 0) / depth;
    Value s = e.constantFragment(0, n);
    for (int64_t part = 0; part < parts; ++part) {
      Value b = e.loadFragment(columns, {e.idx(first), e.idx(part * depth)}, n,
                               depth);
      s = e.multiply(rows, b, s, /*transposed=*/true);
    }
    s = arith::MulFOp::create(e, s, e.spread(scale, n));
    Value weights = e.loadFragment(bias, {e.idx(0), e.idx(first)}, 1, n);
    return arith::AddFOp::create(e, s, e.spreadTo(weights, n));
  }

  /// Lanes hold nodes, and the sum runs over their children.
  static Value lseAcrossChildren(WarpEmitter &e, ScoreBlockOp op,
                                 function_ref<Value(int64_t, int64_t)> score) {
    int64_t group = op.getGroup(), nodes = op.getNodes();
    if (group * nodes <= kColumnTile) {
      SmallVector<Value> children;
      for (int64_t c = 0; c < group; ++c)
        children.push_back(score(c * nodes, nodes));
      Lse lse{children[0], e.constantFragment(0, nodes)};
      for (Value child : ArrayRef(children).drop_front())
        lse.max = arith::MaximumFOp::create(e, lse.max, child);
      for (Value child : children)
        lse.sum = arith::AddFOp::create(
            e, lse.sum, e.exp2(arith::SubFOp::create(e, child, lse.max)));
      return lse.finish(e);
    }
    // Too many to hold: one child after the other.
    Lse lse{e.constantFragment(e.negInf(), nodes),
            e.constantFragment(0, nodes)};
    for (int64_t c = 0; c < group; ++c)
      lse = extend(e, lse, score(c * nodes, nodes), nodes);
    return lse.finish(e);
  }

  /// Adds one term to each element's sum.
  static Lse extend(WarpEmitter &e, const Lse &lse, Value term,
                    int64_t columns) {
    Value max = arith::MaximumFOp::create(e, lse.max, term);
    Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, max,
                                       e.constantFragment(e.negInf(), columns));
    Value reference =
        arith::SelectOp::create(e, none, e.constantFragment(0, columns), max);
    Value old = arith::MulFOp::create(
        e, lse.sum, e.exp2(arith::SubFOp::create(e, lse.max, reference)));
    Value added = e.exp2(arith::SubFOp::create(e, term, reference));
    return {max, arith::AddFOp::create(e, old, added)};
  }

  /// One node: the sum runs over all columns.
  static Value lseAcrossColumns(WarpEmitter &e, ScoreBlockOp op,
                                function_ref<Value(int64_t, int64_t)> score) {
    int64_t columns = e.staticDim(op.getColumns(), 1);
    Lse lse;
    for (Piece piece : getPieces(columns, kColumnTile)) {
      Value s = score(piece.offset, piece.width);
      Value max = e.rowMax(s);
      if (lse.max)
        max = arith::MaximumFOp::create(e, lse.max, max);
      Value shifted = arith::SubFOp::create(e, s, e.spreadTo(max, piece.width));
      Value sum = e.rowSum(e.exp2(shifted));
      if (lse.max) {
        // -inf - -inf is NaN, and so is the result of an empty block: replaced
        // by its maximum in the end.
        Value factor = e.exp2(arith::SubFOp::create(e, lse.max, max));
        Value none =
            arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, lse.max,
                                  e.constantFragment(e.negInf(), 1));
        factor =
            arith::SelectOp::create(e, none, e.constantFragment(0, 1), factor);
        Value old =
            arith::SelectOp::create(e, none, e.constantFragment(0, 1),
                                    arith::MulFOp::create(e, lse.sum, factor));
        sum = arith::AddFOp::create(e, old, sum);
      }
      lse = {max, sum};
    }
    return lse.finish(e);
  }

  LogicalResult matchAndRewrite(ScoreBlockOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value lists = op.getLists();
    int64_t n = e.staticDim(lists, 3), limit = op.getLimit();
    if (limit >= n) {
      // No list is long enough to drop anything.
      rewriter.eraseOp(op);
      return success();
    }
    RowLayout layout =
        RowLayout::get(e, op.getQueries(), op.getQueryBlock(), op.getHeads());
    int64_t nodes = op.getNodes();
    int64_t numColumns = e.staticDim(op.getColumns(), 1);
    Value rows = e.rowsOf(op.getQueries());
    Value columns = getStorage(op.getColumns());
    SmallVector<ReassociationIndices> groups = {{0, 1}};
    Value bias = memref::ExpandShapeOp::create(
        e, ArrayRef<int64_t>{1, numColumns}, getStorage(op.getBias()), groups);
    Value terms = e.scratchView({layout.numRows, nodes}, e.getF32Type());
    Value scale = arith::MulFOp::create(e, op.getScale(),
                                        e.f32(static_cast<float>(M_LOG2E)));
    int64_t depth = e.staticDim(op.getQueries(), 2);
    bool wide = layout.rowsPerBlock > kRows; // a query block of several tiles

    e.forEachRowTile(layout.numRows, [&](Value, Value tile) {
      Value first = layout.firstBlock(e, tile);
      // Lists of at most `limit` entries are scored too: it is cheaper than to
      // look each time how long they are.
      Value mask = emitListedMask(e, lists, first, layout.blocksPerTile(),
                                  nodes, op.getBlock());
      e.when(e.cmp(arith::CmpIPredicate::ne, mask, e.i32(0)), [&] {
        Value row0 = e.mul(tile, e.idx(kRows));
        Value a = e.loadFragment(rows, {row0, e.idx(0)}, kRows, depth);
        auto score = [&](int64_t column, int64_t count) {
          return scoresOf(e, op, a, columns, bias, scale, column, count);
        };
        Value y = nodes == 1 ? lseAcrossColumns(e, op, score)
                             : lseAcrossChildren(e, op, score);
        vector::StoreOp::create(e, y, terms, ValueRange{row0, e.idx(0)});
        if (wide)
          return;
        e.syncWarp();
        e.forEachLane(e.idx(layout.blocksPerTile() * n), [&](Value i) {
          sumRows(e, op, layout, terms, e.add(first, e.div(i, n)), e.rem(i, n));
        });
        // Lanes meet again before the next product. The next block's terms
        // overwrite these only after a barrier.
        e.syncWarp();
      });
    });
    if (wide) {
      e.barrier();
      e.forEachThread(e.mul(e.dim(lists, 2), e.idx(n)), [&](Value i) {
        sumRows(e, op, layout, terms, e.div(i, n), e.rem(i, n));
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// Writes the score of entry `i` of list `j` if it lies in the block: the sum
  /// over the real rows of the query block, in their order.
  static void sumRows(WarpEmitter &e, ScoreBlockOp op, const RowLayout &layout,
                      Value terms, Value j, Value i) {
    Value lists = op.getLists(), zero = e.idx(0);
    int64_t nodes = op.getNodes();
    Value exists = e.cmp(arith::CmpIPredicate::slt, j, e.dim(lists, 2));
    e.when(exists, [&] {
      Value entry = e.load(lists, {zero, zero, j, i});
      Value key = entry;
      if (nodes > 1)
        key = arith::DivUIOp::create(e, entry, e.i32(nodes));
      Value mine = e.cmp(arith::CmpIPredicate::eq, key, e.toI32(op.getBlock()));
      e.when(mine, [&] {
        int64_t most = layout.queryBlock * layout.heads;
        Value count = e.idx(most);
        if (layout.queryBlock > 1) {
          // Rows of queries past the sequence's end count for nothing.
          Value queries = e.min(
              e.sub(op.getNumQueries(), e.mul(j, e.idx(layout.queryBlock))),
              e.idx(layout.queryBlock));
          count = e.mul(queries, e.idx(layout.heads));
        }
        Value node =
            nodes == 1
                ? zero
                : e.toIndex(arith::RemUIOp::create(e, entry, e.i32(nodes)));
        Value row0 = e.mul(j, e.idx(layout.rowsPerBlock));
        Value total =
            e.loop(zero, e.idx(most), 1, e.f32(0),
                   [&](Value r, ValueRange sum) -> SmallVector<Value> {
                     Value term = e.load(terms, {e.add(row0, r), node});
                     Value more = arith::AddFOp::create(e, sum[0], term);
                     if (layout.queryBlock == 1)
                       return {more};
                     // The same number of steps for all (WarpEmitter::share).
                     Value real = e.cmp(arith::CmpIPredicate::slt, r, count);
                     return {arith::SelectOp::create(e, real, more, sum[0])};
                   })[0];
        Value ln2 = e.f32(static_cast<float>(M_LN2));
        e.store(arith::MulFOp::create(e, total, ln2), op.getScores(),
                {zero, zero, j, i});
      });
    });
  }
};

} // namespace

void pisa::populateGPUScorePatterns(RewritePatternSet &patterns,
                                    const TaskContext &task) {
  patterns.add<ScoreBlock>(patterns.getContext(), task);
}
