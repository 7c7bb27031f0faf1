//===- Entries.cpp - Leaf scores from the inverted list ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

/// Columns whose scores a warp holds at a time: 32 registers a lane.
static constexpr int64_t kColumnTile = 64;

namespace {

/// Every entry of a task's lists that counts, shared among the threads:
/// `body(block, j, i)`.
void forEachEntry(WarpEmitter &e, Value lists, int64_t limit,
                  function_ref<void(Value, Value, Value)> body) {
  int64_t n = e.staticDim(lists, 3);
  Value zero = e.idx(0);
  e.forEachThread(e.mul(e.dim(lists, 2), e.idx(n)), [&](Value flat) {
    Value j = e.div(flat, n), i = e.rem(flat, n);
    Value entry = e.load(lists, {zero, zero, j, i});
    Value counts = e.cmp(arith::CmpIPredicate::sge, entry, e.i32(0));
    if (limit < n) {
      Value last = e.load(lists, {zero, zero, j, e.idx(limit)});
      counts = e.both(counts, e.cmp(arith::CmpIPredicate::sge, last, e.i32(0)));
    }
    e.when(counts, [&] { body(e.toIndex(entry), j, i); });
  });
}

Value atomicAdd(WarpEmitter &e, Value buffer, Value i) {
  return memref::AtomicRMWOp::create(e, arith::AtomicRMWKind::addi, e.i32(1),
                                     buffer, ValueRange{e.idx(0), e.idx(0), i});
}

struct CountEntries : TaskPattern<CountEntriesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(CountEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getLists()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    int64_t n = e.staticDim(op.getLists(), 3);
    if (static_cast<int64_t>(op.getLimit()) < n)
      forEachEntry(e, op.getLists(), op.getLimit(),
                   [&](Value block, Value, Value) {
                     atomicAdd(e, op.getCounts(), block);
                   });
    rewriter.eraseOp(op);
    return success();
  }
};

struct ListEntries : TaskPattern<ListEntriesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(ListEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getLists()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    int64_t n = e.staticDim(op.getLists(), 3);
    Value zero = e.idx(0);
    if (static_cast<int64_t>(op.getLimit()) < n)
      forEachEntry(
          e, op.getLists(), op.getLimit(), [&](Value block, Value j, Value i) {
            Value place = atomicAdd(e, op.getCursors(), block);
            Value number =
                e.add(e.mul(e.add(op.getListOffset(), j), e.idx(n)), i);
            e.store(e.toI32(number), op.getEntries(),
                    {zero, zero, e.toIndex(place)});
          });
    rewriter.eraseOp(op);
    return success();
  }
};

/// The first warp sums, 32 blocks at a time; all threads clear what is left.
struct PlaceEntries : TaskPattern<PlaceEntriesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PlaceEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getItems()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    Value counts = op.getCounts(), rows = op.getRows(), items = op.getItems();
    Value zero = e.idx(0), one = e.idx(1);
    Value blocks = e.dim(counts, 2);
    int64_t gather = op.getGather();

    // Items that no block has stay empty: cleared before the others are
    // written.
    e.forEachThread(e.dim(items, 2), [&](Value i) {
      e.store(e.i32(-1), items, {zero, zero, i, zero});
    });
    e.barrier();
    Value isFirst = e.cmp(arith::CmpIPredicate::eq, e.warp(), zero);
    e.when(isFirst, [&] {
      Value lane = e.lane();
      SmallVector<Value> end = e.loop(
          zero, blocks, kWarpSize, {e.i32(0), e.i32(0)},
          [&](Value base, ValueRange carried) -> SmallVector<Value> {
            Value block = e.add(base, lane);
            Value inside = e.cmp(arith::CmpIPredicate::slt, block, blocks);
            Value safe = arith::SelectOp::create(e, inside, block, zero);
            Value count = arith::SelectOp::create(
                e, inside, e.load(counts, {zero, zero, safe}), e.i32(0));
            Value work = arith::DivUIOp::create(
                e, e.add(count, e.i32(static_cast<int32_t>(gather - 1))),
                e.i32(static_cast<int32_t>(gather)));
            Value countSum = e.scan(count), workSum = e.scan(work);
            Value start = e.add(carried[0], e.sub(countSum, count));
            Value item = e.add(carried[1], e.sub(workSum, work));
            e.when(inside, [&] {
              e.store(start, rows, {zero, zero, block});
              e.store(start, op.getCursors(), {zero, zero, block});
              e.loop(zero, e.toIndex(work), 1, [&](Value k) {
                Value place = e.add(e.toIndex(item), k);
                Value first = e.add(start, e.toI32(e.mul(k, e.idx(gather))));
                e.store(e.toI32(block), items, {zero, zero, place, zero});
                e.store(first, items, {zero, zero, place, one});
              });
            });
            return {e.add(carried[0], e.lastLane(countSum)),
                    e.add(carried[1], e.lastLane(workSum))};
          });
      e.when(e.cmp(arith::CmpIPredicate::eq, lane, zero),
             [&] { e.store(end[0], rows, {zero, zero, blocks}); });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

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
    Value q = op.getQ(), k = op.getK(), zero = e.idx(0);
    int64_t headDim = e.staticDim(q, 3);
    int64_t depth = llvm::alignTo(static_cast<uint64_t>(headDim), kRows);
    int64_t pitch = depth + kRows / 2;
    int64_t blockSize = params.getBlockSize();
    Type type = cast<MemRefType>(q.getType()).getElementType();
    int64_t rowBytes = pitch * type.getIntOrFloatBitWidth() / 8;
    Value keys = e.scratchView({blockSize, pitch}, type);
    Value gathered = e.scratchView({2 * task.numWarps * kRows, pitch}, type,
                                   blockSize * rowBytes);
    Value terms =
        e.scratchView({task.numWarps * kRows, 1}, e.getF32Type(),
                      (blockSize + 2 * task.numWarps * kRows) * rowBytes);

    Value block = e.toIndex(e.load(op.getItems(), {zero, zero, zero, zero}));
    e.when(e.cmp(arith::CmpIPredicate::sge, block, zero), [&] {
      Value first =
          e.toIndex(e.load(op.getItems(), {zero, zero, zero, e.idx(1)}));
      Value end =
          e.toIndex(e.load(op.getRows(), {zero, zero, e.add(block, e.idx(1))}));
      Value count = e.min(e.sub(end, first), e.idx(op.getGather()));
      Value kLen = e.toIndex(e.load(op.getKLen(), zero));
      Value firstKey = e.mul(block, e.idx(blockSize));
      e.copyRows(k, firstKey, kLen, blockSize, depth, keys);
      NVVM::CpAsyncCommitGroupOp::create(e);
      NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(0));
      e.barrier();
      scoreRows(e, op, keys, gathered, terms, first, count,
                e.sub(kLen, firstKey), depth);
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

  /// Where the rows of an entry's query block lie among gathered rows.
  struct Gather {
    int64_t queryBlock, heads;
    int64_t real;         ///< rows of a query block
    int64_t rowsPerEntry; ///< the same, a power of two up to 16 or whole tiles
    int64_t entriesPerTile; ///< of 16 rows
    int64_t tilesPerEntry;
    int64_t rowsInTile; ///< rows of one entry in one tile
    int64_t headDim, depth, listWidth;

    static Gather get(WarpEmitter &e, ScoreEntriesOp op, int64_t depth) {
      Gather g;
      g.queryBlock = op.getParams().getQueryBlock();
      g.heads = e.staticDim(op.getQ(), 1);
      g.real = g.queryBlock * g.heads;
      g.rowsPerEntry =
          g.real <= kRows ? static_cast<int64_t>(llvm::PowerOf2Ceil(g.real))
                          : llvm::alignTo(static_cast<uint64_t>(g.real), kRows);
      g.entriesPerTile = std::max<int64_t>(1, kRows / g.rowsPerEntry);
      g.tilesPerEntry = std::max<int64_t>(1, g.rowsPerEntry / kRows);
      g.rowsInTile = std::min(g.rowsPerEntry, kRows);
      g.headDim = e.staticDim(op.getQ(), 3);
      g.depth = depth;
      g.listWidth = e.staticDim(op.getScores(), 3);
      return g;
    }
  };

  /// Entries [first, end) of an item.
  struct Range {
    Value first, end;
    Value entry(WarpEmitter &e, ScoreEntriesOp op, Value place) const {
      Value safe = e.min(place, e.sub(end, e.idx(1)));
      return e.toIndex(e.load(op.getEntries(), {e.idx(0), e.idx(0), safe}));
    }
  };

  /// Copies 16 rows of the queries of the entries from `base` on, `part` tiles
  /// into each.
  static void gatherRows(WarpEmitter &e, ScoreEntriesOp op, const Gather &g,
                         const Range &range, Value aligned, Value base,
                         Value part, Value target, Value targetRow) {
    Value q = op.getQ(), zero = e.idx(0);
    Value numQueries = e.dim(q, 2);
    int64_t chunks = g.depth / kChunk;
    // Row r of the tile: (place of its entry, row in the query block).
    auto locate = [&](Value r) {
      Value place = e.add(base, e.div(r, g.rowsInTile));
      Value inner = e.add(e.rem(r, g.rowsInTile), e.mul(part, e.idx(kRows)));
      return std::pair(place, inner);
    };
    auto queryOf = [&](Value place, Value inner) -> Value {
      Value list = e.div(range.entry(e, op, place), g.listWidth);
      return e.add(e.mul(list, e.idx(g.queryBlock)), e.div(inner, g.heads));
    };
    auto anyRows = [&] {
      e.forEachLane(e.idx(kRows * chunks), [&](Value i) {
        Value r = e.div(i, chunks);
        Value d = e.mul(e.rem(i, chunks), e.idx(kChunk));
        auto [place, inner] = locate(r);
        Value query = queryOf(place, inner);
        Value present =
            e.both(e.cmp(arith::CmpIPredicate::slt, place, range.end),
                   e.cmp(arith::CmpIPredicate::slt, query, numQueries));
        if (g.rowsPerEntry != g.real)
          present = e.both(
              present, e.cmp(arith::CmpIPredicate::slt, inner, e.idx(g.real)));
        if (g.depth != g.headDim)
          present = e.both(
              present, e.cmp(arith::CmpIPredicate::slt, d, e.idx(g.headDim)));
        e.copyChunk(aligned, present, q,
                    {zero, e.rem(inner, g.heads), query, d}, target,
                    {e.add(targetRow, r), d});
      });
    };
    // All rows are there: no lane asks.
    if (g.rowsPerEntry != g.real || g.depth != g.headDim || g.queryBlock != 1 ||
        kWarpSize % chunks != 0)
      return anyRows();
    Value whole = e.cmp(arith::CmpIPredicate::sle,
                        e.add(base, e.idx(g.entriesPerTile)), range.end);
    e.when(
        e.both(whole, aligned),
        [&] {
          Value row0 = e.div(e.lane(), chunks);
          Value d = e.mul(e.rem(e.lane(), chunks), e.idx(kChunk));
          for (int64_t r = 0; r < kRows; r += kWarpSize / chunks) {
            Value row = e.add(row0, e.idx(r));
            auto [place, inner] = locate(row);
            Value list =
                e.div(e.toIndex(e.load(op.getEntries(), {zero, zero, place})),
                      g.listWidth);
            e.copyWholeChunk(q, {zero, e.rem(inner, g.heads), list, d}, target,
                             {e.add(targetRow, row), d});
          }
        },
        anyRows);
  }

  static void scoreRows(WarpEmitter &e, ScoreEntriesOp op, Value keys,
                        Value gathered, Value terms, Value first, Value count,
                        Value left, int64_t depth) {
    Value zero = e.idx(0), one = e.idx(1);
    Gather g = Gather::get(e, op, depth);
    Range range{first, e.add(first, count)};
    Value numQueries = e.dim(op.getQ(), 2);
    Value aligned = e.isAligned(op.getQ());
    Value scale = arith::MulFOp::create(e, op.getScale(),
                                        e.f32(static_cast<float>(M_LOG2E)));
    Value warpRow = e.mul(e.warp(), e.idx(kRows));
    int64_t stageRows = e.task.numWarps * kRows;

    // Steps of this warp: a tile of entries each numWarps, all its parts.
    Value numTiles =
        arith::CeilDivSIOp::create(e, count, e.idx(g.entriesPerTile));
    Value tiles = arith::CeilDivSIOp::create(e, e.sub(numTiles, e.warp()),
                                             e.idx(e.task.numWarps));
    Value steps = e.mul(e.max(tiles, zero), e.idx(g.tilesPerEntry));
    auto baseOf = [&](Value step) -> Value {
      Value tile = e.add(e.warp(), e.mul(e.div(step, g.tilesPerEntry),
                                         e.idx(e.task.numWarps)));
      return e.add(first, e.mul(tile, e.idx(g.entriesPerTile)));
    };
    auto partOf = [&](Value step) { return e.rem(step, g.tilesPerEntry); };
    auto rowOf = [&](Value stage) {
      return e.add(warpRow, e.mul(stage, e.idx(stageRows)));
    };
    auto gather = [&](Value step, Value stage) {
      e.when(e.cmp(arith::CmpIPredicate::slt, step, steps), [&] {
        gatherRows(e, op, g, range, aligned, baseOf(step), partOf(step),
                   gathered, rowOf(stage));
      });
      NVVM::CpAsyncCommitGroupOp::create(e);
    };
    gather(zero, zero);
    SmallVector<Value> inits = {zero, e.f32(0)};
    e.loop(zero, steps, 1, inits,
           [&](Value step, ValueRange carried) -> SmallVector<Value> {
             Value stage = carried[0], total = carried[1];
             Value other = e.sub(one, stage);
             // The next rows come while these are worked on.
             gather(e.add(step, one), other);
             NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(1));
             e.syncWarp();
             Value rows =
                 e.loadFragment(gathered, {rowOf(stage), zero}, kRows, depth);
             Value y = lse(e, rows, keys, scale, left,
                           op.getParams().getBlockSize(), depth);
             vector::StoreOp::create(e, y, terms, ValueRange{warpRow, zero});
             e.syncWarp();
             Value part = partOf(step);
             Value mine = e.add(baseOf(step), e.lane());
             Value isMine =
                 e.both(e.cmp(arith::CmpIPredicate::slt, e.lane(),
                              e.idx(g.entriesPerTile)),
                        e.cmp(arith::CmpIPredicate::slt, mine, range.end));
             total = e.choose(
                 isMine, e.getF32Type(),
                 [&] {
                   Value entry = range.entry(e, op, mine);
                   Value list = e.div(entry, g.listWidth);
                   // Rows of queries past the sequence's end count for nothing.
                   Value queries = e.min(
                       e.sub(numQueries, e.mul(list, e.idx(g.queryBlock))),
                       e.idx(g.queryBlock));
                   Value rowsLeft = e.sub(e.mul(queries, e.idx(g.heads)),
                                          e.mul(part, e.idx(kRows)));
                   Value row0 =
                       e.add(warpRow, e.mul(e.lane(), e.idx(g.rowsInTile)));
                   // The same number of steps for all lanes (WarpEmitter::share).
                   Value sum = e.loop(
                       zero, e.idx(std::min(g.real, kRows)), 1, total,
                       [&](Value r, ValueRange sum) -> SmallVector<Value> {
                         Value term = e.load(terms, {e.add(row0, r), zero});
                         Value more = arith::AddFOp::create(e, sum[0], term);
                         if (g.queryBlock == 1)
                           return {more};
                         Value real =
                             e.cmp(arith::CmpIPredicate::slt, r, rowsLeft);
                         return {
                             arith::SelectOp::create(e, real, more, sum[0])};
                       })[0];
                   Value isLast = e.cmp(arith::CmpIPredicate::eq, part,
                                        e.idx(g.tilesPerEntry - 1));
                   e.when(isLast, [&] {
                     Value ln2 = e.f32(static_cast<float>(M_LN2));
                     e.store(arith::MulFOp::create(e, sum, ln2), op.getScores(),
                             {zero, zero, list, e.rem(entry, g.listWidth)});
                   });
                   return SmallVector<Value>{
                       arith::SelectOp::create(e, isLast, e.f32(0), sum)};
                 },
                 [&] { return SmallVector<Value>{total}; })[0];
             // The next terms and rows overwrite these.
             e.syncWarp();
             return {other, total};
           });
    NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(0));
  }
};

} // namespace

void pisa::populateGPUEntryPatterns(RewritePatternSet &patterns,
                                    const TaskContext &task) {
  patterns.add<CountEntries, PlaceEntries, ListEntries, ScoreEntries>(
      patterns.getContext(), task);
}
