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

namespace {

/// Every entry of a task's lists that counts, shared among the threads:
/// `body(block, j, i)`.
template <typename OpTy>
void forEachEntry(WarpEmitter &e, OpTy op,
                  function_ref<void(Value, Value, Value)> body) {
  Value lists = op.getLists(), zero = e.idx(0);
  int64_t n = e.staticDim(lists, 3), limit = op.getLimit();
  if (limit >= n)
    return;
  ParamsAttr params = op.getParams();
  std::optional<Positions> positions;
  if (op.getKLen())
    positions =
        Positions::get(e, params, op.getKLen(), op.getQStart(),
                       e.mul(op.getListOffset(), e.idx(params.getQueryBlock())),
                       op.getQueryLength());
  e.forEachThread(e.mul(e.dim(lists, 2), e.idx(n)), [&](Value flat) {
    Value j = e.div(flat, n), i = e.rem(flat, n);
    Value entry = e.load(lists, {zero, zero, j, i});
    Value last = e.load(lists, {zero, zero, j, e.idx(limit)});
    Value block = e.toIndex(entry);
    Value counts = e.both(e.cmp(arith::CmpIPredicate::sge, entry, e.i32(0)),
                          e.cmp(arith::CmpIPredicate::sge, last, e.i32(0)));
    if (positions) {
      Value forced = isForced(e, *positions, block, e.idx(1), j);
      Value yes = arith::ConstantOp::create(e, e.getBoolAttr(true));
      counts = e.both(counts, arith::XOrIOp::create(e, forced, yes));
    }
    e.when(counts, [&] { body(block, j, i); });
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
    forEachEntry(e, op, [&](Value block, Value, Value) {
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
    forEachEntry(e, op, [&](Value block, Value j, Value i) {
      Value place = atomicAdd(e, op.getCursors(), block);
      Value number = e.add(e.mul(e.add(op.getListOffset(), j), e.idx(n)), i);
      e.store(e.toI32(number), op.getEntries(), {zero, zero, e.toIndex(place)});
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

} // namespace

void pisa::populateGPUEntryPatterns(RewritePatternSet &patterns,
                                    const TaskContext &task) {
  patterns.add<CountEntries, PlaceEntries, ListEntries>(patterns.getContext(),
                                                        task);
}
