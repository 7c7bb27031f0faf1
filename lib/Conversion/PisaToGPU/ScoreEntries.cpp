//===- ScoreEntries.cpp - Leaf scores by leaf -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gather.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

/// Columns whose scores a warp holds at a time: 32 registers a lane.
static constexpr int64_t kColumnTile = 64;

namespace {

/// The keys of one leaf, and each warp by itself gathers 16 rows of queries at
/// a time.
struct ScoreEntries : TaskPattern<ScoreEntriesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(ScoreEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getItems()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    ParamsAttr params = op.getParams();
    Value zero = e.idx(0);
    EntryGather gather(e, op.getQ(), op.getEntries(), params.getQueryBlock(),
                       e.staticDim(op.getScores(), 3));
    int64_t pitch = gather.depth + kRows / 2;
    int64_t blockSize = params.getBlockSize();
    Type type = cast<MemRefType>(op.getQ().getType()).getElementType();
    int64_t rowBytes = pitch * type.getIntOrFloatBitWidth() / 8;
    int64_t gatheredRows = gather.getStorageRows();
    Value keys = e.scratchView({blockSize, pitch}, type);
    Value gathered =
        e.scratchView({gatheredRows, pitch}, type, blockSize * rowBytes);
    int64_t used = (blockSize + gatheredRows) * rowBytes;
    Value sources = e.scratchView({gatheredRows}, e.getI64Type(), used);
    Value terms = e.scratchView({task.numWarps * kRows, 1}, e.getF32Type(),
                                used + 8 * gatheredRows);

    forItem(e, op.getItems(), op.getRows(), op.getGather(),
            [&](Value block, Value first, Value count) {
              Value kLen = e.toIndex(e.load(op.getKLen(), zero));
              Value firstKey = e.mul(block, e.idx(blockSize));
              e.copyRows(op.getK(), firstKey, kLen, blockSize, gather.depth,
                         keys);
              NVVM::CpAsyncCommitGroupOp::create(e);
              NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(0));
              e.barrier();
              gather.begin(first, count, gathered, sources);
              scoreRows(e, op, gather, keys, gathered, terms,
                        e.sub(kLen, firstKey));
            });
    rewriter.eraseOp(op);
    return success();
  }

  /// log2 of the sum of 2^s over the block's keys, a row each; `left` keys of
  /// the block exist.
  static Value lse(WarpEmitter &e, Value rows, Value keys, Value scale,
                   Value left, int64_t blockSize, int64_t depth) {
    Value max, sum;
    Value partial = e.cmp(arith::CmpIPredicate::slt, left, e.idx(blockSize));
    Value limit = e.toI32(e.min(left, e.idx(blockSize)));
    for (Piece piece : getPieces(blockSize, kColumnTile)) {
      Value b = e.loadFragment(keys, {e.idx(piece.offset), e.idx(0)},
                               piece.width, depth);
      Value s = e.multiply(rows, b, e.constantFragment(0, piece.width),
                           /*transposed=*/true);
      s = arith::MulFOp::create(e, s, e.spread(scale, piece.width));
      s = e.choose(
          partial, s.getType(),
          [&] {
            // Few blocks are partial: LLVM would select among both for all of
            // them, but does not move a meeting of lanes.
            e.syncWarp();
            Value column = e.columnNumbers(piece.width, piece.offset);
            Value seen = e.cmp(arith::CmpIPredicate::slt,
                               e.spreadTo(column, piece.width),
                               e.spread(limit, piece.width));
            return SmallVector<Value>{arith::SelectOp::create(
                e, seen, s, e.constantFragment(e.negInf(), piece.width))};
          },
          [&] { return SmallVector<Value>{s}; })[0];
      Value pieceMax = e.rowMax(s);
      Value newMax =
          max ? Value(arith::MaximumFOp::create(e, max, pieceMax)) : pieceMax;
      Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, newMax,
                                         e.constantFragment(e.negInf(), 1));
      Value reference =
          arith::SelectOp::create(e, none, e.constantFragment(0, 1), newMax);
      Value p = e.exp2(
          arith::SubFOp::create(e, s, e.spreadTo(reference, piece.width)));
      Value added = e.rowSum(p);
      if (max) {
        Value old = arith::MulFOp::create(
            e, sum, e.exp2(arith::SubFOp::create(e, max, reference)));
        added = arith::AddFOp::create(e, old, added);
      }
      max = newMax;
      sum = added;
    }
    Value finite = arith::AddFOp::create(e, max, e.log2(sum));
    return arith::SelectOp::create(e, e.isFinite(max), finite, max);
  }

  static void scoreRows(WarpEmitter &e, ScoreEntriesOp op, EntryGather &gather,
                        Value keys, Value gathered, Value terms, Value left) {
    Value zero = e.idx(0);
    Value numQueries = e.dim(op.getQ(), 2);
    Value scale = arith::MulFOp::create(e, op.getScale(),
                                        e.f32(static_cast<float>(M_LOG2E)));
    Value warpRow = e.mul(e.warp(), e.idx(kRows));
    gather.forEachTile(
        e.f32(0),
        [&](Value row, const EntryGather::Row &first, Value step,
            ValueRange carried) -> SmallVector<Value> {
          Value rows =
              e.loadFragment(gathered, {row, zero}, kRows, gather.depth);
          Value y = lse(e, rows, keys, scale, left,
                        op.getParams().getBlockSize(), gather.depth);
          vector::StoreOp::create(e, y, terms, ValueRange{warpRow, zero});
          e.syncWarp();
          // Lane i sums up entry i of the tile, which its first row knows.
          Value entry = e.fromLane(
              e.toI32(first.entry),
              e.rem(e.mul(e.lane(), e.idx(gather.rowsInTile)), kRows));
          Value mine = e.add(gather.baseOf(step), e.lane());
          Value isMine =
              e.both(e.cmp(arith::CmpIPredicate::slt, e.lane(),
                           e.idx(gather.entriesPerTile)),
                     e.cmp(arith::CmpIPredicate::slt, mine, gather.end()));
          Value part = gather.partOf(step);
          return e.choose(
              isMine, e.getF32Type(),
              [&] {
                Value number = e.toIndex(entry);
                Value list = e.div(number, gather.listWidth);
                // Rows of queries past the sequence's end count for nothing.
                Value queries = e.min(
                    e.sub(numQueries, e.mul(list, e.idx(gather.queryBlock))),
                    e.idx(gather.queryBlock));
                Value rowsLeft = e.sub(e.mul(queries, e.idx(gather.heads)),
                                       e.mul(part, e.idx(kRows)));
                Value row0 =
                    e.add(warpRow, e.mul(e.lane(), e.idx(gather.rowsInTile)));
                // The same number of steps for all lanes (WarpEmitter::share).
                Value sum = e.loop(
                    zero, e.idx(std::min(gather.real, kRows)), 1, carried,
                    [&](Value r, ValueRange sum) -> SmallVector<Value> {
                      Value term = e.load(terms, {e.add(row0, r), zero});
                      Value more = arith::AddFOp::create(e, sum[0], term);
                      // Whole tiles of one query.
                      if (gather.queryBlock == 1 &&
                          (gather.real <= kRows || gather.real % kRows == 0))
                        return {more};
                      Value real =
                          e.cmp(arith::CmpIPredicate::slt, r, rowsLeft);
                      return {arith::SelectOp::create(e, real, more, sum[0])};
                    })[0];
                Value isLast = e.cmp(arith::CmpIPredicate::eq, part,
                                     e.idx(gather.tilesPerEntry - 1));
                e.when(isLast, [&] {
                  Value ln2 = e.f32(static_cast<float>(M_LN2));
                  e.store(arith::MulFOp::create(e, sum, ln2), op.getScores(),
                          {zero, zero, list, e.rem(number, gather.listWidth)});
                });
                return SmallVector<Value>{
                    arith::SelectOp::create(e, isLast, e.f32(0), sum)};
              },
              [&] { return llvm::to_vector(carried); });
        });
  }
};

} // namespace

void pisa::populateGPUScoreEntriesPatterns(RewritePatternSet &patterns,
                                           const TaskContext &task) {
  patterns.add<ScoreEntries>(patterns.getContext(), task);
}
