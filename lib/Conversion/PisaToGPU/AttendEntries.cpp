//===- AttendEntries.cpp - Attention by block, and its sums -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gather.h"
#include "Softmax.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// The keys and values of one block; each warp by itself gathers 16 rows of
/// queries at a time.
struct AttendEntries : TaskPattern<AttendEntriesOp> {
  using TaskPattern::TaskPattern;

  /// Workgroup memory of a task, in the order of `getScratchBytes`.
  struct Memory {
    Value keys, values, rows;
    Value lse;     ///< a warp's 16 rows, f32
    Value limits;  ///< the last key that each of them sees, i32
    Value targets; ///< its row among the partial outputs, or -1, i32
    Value sources; ///< of the gather
  };

  LogicalResult matchAndRewrite(AttendEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getItems()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    ParamsAttr params = op.getParams();
    Value zero = e.idx(0);
    EntryGather gather(e, op.getQ(), op.getEntries(), params.getQueryBlock(),
                       params.getTopk());
    int64_t valueDim =
        llvm::alignTo(static_cast<uint64_t>(e.staticDim(op.getV(), 3)), kRows);
    int64_t blockSize = params.getBlockSize();
    Type type = cast<MemRefType>(op.getQ().getType()).getElementType();
    int64_t bytes = type.getIntOrFloatBitWidth() / 8, used = 0;
    auto take = [&](int64_t rows, int64_t columns, Type type, int64_t bytes) {
      Value view = e.scratchView({rows, columns}, type, used);
      used += rows * columns * bytes;
      return view;
    };
    int64_t warpRows = task.numWarps * kRows, pad = kRows / 2;
    Memory memory;
    memory.keys = take(blockSize, gather.depth + pad, type, bytes);
    memory.values = take(blockSize, valueDim + pad, type, bytes);
    // Queries come in, outputs leave.
    memory.rows = take(gather.getStorageRows(),
                       std::max(gather.depth, valueDim) + pad, type, bytes);
    memory.sources =
        e.scratchView({gather.getStorageRows()}, e.getI64Type(), used);
    used += 8 * gather.getStorageRows();
    memory.lse = take(warpRows, 1, e.getF32Type(), 4);
    memory.limits = take(warpRows, 1, e.getI32Type(), 4);
    memory.targets = e.scratchView({warpRows}, e.getI32Type(), used);

    forItem(e, op.getItems(), op.getRows(), op.getGather(),
            [&](Value block, Value first, Value count) {
              Value kLen = e.toIndex(e.load(op.getKLen(), zero));
              Value firstKey = e.mul(block, e.idx(blockSize));
              e.copyRows(op.getK(), firstKey, kLen, blockSize, gather.depth,
                         memory.keys);
              e.copyRows(op.getV(), firstKey, kLen, blockSize, valueDim,
                         memory.values);
              NVVM::CpAsyncCommitGroupOp::create(e);
              NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(0));
              e.barrier();
              gather.begin(first, count, memory.rows, memory.sources);
              attendRows(e, op, gather, memory, valueDim, firstKey,
                         e.sub(kLen, firstKey));
            });
    rewriter.eraseOp(op);
    return success();
  }

  static void attendRows(WarpEmitter &e, AttendEntriesOp op,
                         EntryGather &gather, const Memory &memory,
                         int64_t valueDim, Value firstKey, Value left) {
    ParamsAttr params = op.getParams();
    int64_t blockSize = params.getBlockSize();
    Value zero = e.idx(0);
    Type type = cast<MemRefType>(memory.rows.getType()).getElementType();
    Value scale = arith::MulFOp::create(e, op.getScale(),
                                        e.f32(static_cast<float>(M_LOG2E)));
    Value warpRow = e.mul(e.warp(), e.idx(kRows));
    // Position of the tensor's first query, less the block's first key.
    Value start = zero;
    if (params.getCausal())
      start = e.sub(
          e.add(e.toIndex(e.load(op.getQStart(), zero)), op.getQueryOffset()),
          firstKey);
    Value lastKey = e.sub(e.min(left, e.idx(blockSize)), e.idx(1));

    gather.forEachTile(
        {},
        [&](Value row, const EntryGather::Row &mine, Value,
            ValueRange) -> SmallVector<Value> {
          // Lane r finds the last key of the block that row r sees, and where
          // its output goes.
          Value r = e.rem(e.lane(), kRows);
          Value limit = lastKey;
          if (params.getCausal())
            limit = e.max(e.min(limit, e.add(start, mine.query)), e.idx(-1));
          e.when(e.cmp(arith::CmpIPredicate::slt, e.lane(), e.idx(kRows)), [&] {
            e.store(e.toI32(limit), memory.limits, {e.add(warpRow, r), zero});
            Value target = e.toI32(
                e.add(e.mul(mine.entry, e.idx(gather.real)), mine.inner));
            target = arith::SelectOp::create(e, mine.real, target, e.i32(-1));
            e.store(target, memory.targets, e.add(warpRow, r));
          });
          Value cut = e.ballot(
              e.cmp(arith::CmpIPredicate::slt, limit, e.idx(blockSize - 1)));
          Value needed = e.cmp(arith::CmpIPredicate::ne, cut, e.i32(0));
          e.syncWarp();

          Value rows =
              e.loadFragment(memory.rows, {row, zero}, kRows, gather.depth);
          Softmax state;
          state.attend(
              e, rows, memory.keys, memory.values, scale, blockSize,
              [&](Value s, Piece piece) {
                return e.choose(
                    needed, s.getType(),
                    [&] {
                      auto column = VectorType::get({kRows, 1}, e.getI32Type());
                      Value limits = vector::LoadOp::create(
                          e, column, memory.limits, ValueRange{warpRow, zero});
                      Value numbers =
                          e.columnNumbers(piece.width, piece.offset);
                      Value seen = e.cmp(arith::CmpIPredicate::sle,
                                         e.spreadTo(numbers, piece.width),
                                         e.spreadTo(limits, piece.width));
                      return SmallVector<Value>{arith::SelectOp::create(
                          e, seen, s,
                          e.constantFragment(e.negInf(), piece.width))};
                    },
                    [&] { return SmallVector<Value>{s}; })[0];
              });
          // The queries' place takes the outputs.
          Value out = state.normalized(e, valueDim, type);
          e.syncWarp();
          vector::StoreOp::create(e, out, memory.rows, ValueRange{row, zero});
          vector::StoreOp::create(e, state.lse2(e), memory.lse,
                                  ValueRange{warpRow, zero});
          e.syncWarp();
          storeRows(e, op, memory, row);
          return {};
        });
  }

  static void storeRows(WarpEmitter &e, AttendEntriesOp op,
                        const Memory &memory, Value row) {
    Value zero = e.idx(0);
    Value warpRow = e.mul(e.warp(), e.idx(kRows));
    Type type = cast<MemRefType>(memory.rows.getType()).getElementType();
    auto chunk = VectorType::get({kChunk}, type);
    llvm::MaybeAlign align(16);
    int64_t chunks = e.staticDim(op.getPartial(), 3) / kChunk;
    // Calls `body` with the target of row r, if it has one.
    auto store = [&](Value r, function_ref<void(Value)> body) {
      Value target = e.load(memory.targets, e.add(warpRow, r));
      e.when(e.cmp(arith::CmpIPredicate::sge, target, e.i32(0)),
             [&] { body(e.toIndex(target)); });
    };
    e.forEachLane(e.idx(kRows * chunks), [&](Value i) {
      Value r = e.div(i, chunks);
      Value d = e.mul(e.rem(i, chunks), e.idx(kChunk));
      store(r, [&](Value target) {
        Value value = vector::LoadOp::create(e, chunk, memory.rows,
                                             ValueRange{e.add(row, r), d},
                                             /*nontemporal=*/false, align);
        vector::StoreOp::create(e, value, op.getPartial(),
                                ValueRange{zero, zero, target, d},
                                /*nontemporal=*/false, align);
      });
    });
    e.forEachLane(e.idx(kRows), [&](Value r) {
      store(r, [&](Value target) {
        e.store(e.load(memory.lse, {e.add(warpRow, r), zero}),
                op.getPartialLse(), {zero, zero, target});
      });
    });
  }
};

/// Every thread adds up 8 columns of a row: the sums are bound by the memory
/// that they read.
struct MergeEntries : TaskPattern<MergeEntriesOp> {
  using TaskPattern::TaskPattern;

  /// Entries whose parts are read before the first of them is used.
  static constexpr int64_t kAhead = 8;

  LogicalResult matchAndRewrite(MergeEntriesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getLists()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    Value lists = op.getLists(), o = op.getO(), zero = e.idx(0);
    int64_t n = e.staticDim(lists, 3), heads = e.staticDim(o, 1);
    int64_t queryBlock = op.getParams().getQueryBlock();
    int64_t chunks = e.staticDim(o, 3) / kChunk;
    Value numQueries = e.dim(o, 2);
    Value aligned = e.isAligned(o);
    Value firstList = e.div(op.getQueryOffset(), queryBlock);
    Value count = e.mul(numQueries, e.idx(heads * chunks));
    e.forEachThread(count, [&](Value i) {
      Value d = e.mul(e.rem(i, chunks), e.idx(kChunk));
      Value head = e.rem(e.div(i, chunks), heads);
      Value query = e.div(i, chunks * heads);
      Value list = e.div(query, queryBlock);
      Value inner = e.add(e.mul(e.rem(query, queryBlock), e.idx(heads)), head);
      // Row of the parts of entry k of the list.
      Value entry0 = e.mul(e.add(firstList, list), e.idx(n));
      auto rowOf = [&](Value k) -> Value {
        return e.add(e.mul(e.add(entry0, k), e.idx(queryBlock * heads)), inner);
      };
      auto lseOf = [&](Value k) -> Value {
        Value node = e.load(lists, {zero, zero, list, k});
        Value real = e.cmp(arith::CmpIPredicate::sge, node, e.i32(0));
        Value lse = e.load(op.getPartialLse(), {zero, zero, rowOf(k)});
        return arith::SelectOp::create(e, real, lse, e.f32(e.negInf()));
      };
      Value max =
          e.loop(zero, e.idx(n), 1, e.f32(e.negInf()),
                 [&](Value k, ValueRange carried) -> SmallVector<Value> {
                   return {arith::MaximumFOp::create(e, carried[0], lseOf(k))};
                 })[0];
      Value none = arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, max,
                                         e.f32(e.negInf()));
      Value reference = arith::SelectOp::create(e, none, e.f32(0), max);
      auto f32x = VectorType::get({kChunk}, e.getF32Type());
      Value nothing =
          arith::ConstantOp::create(e, DenseElementsAttr::get(f32x, 0.0f));
      SmallVector<Value> carried = {e.f32(0), nothing};
      // In the order of the list, whatever is read ahead.
      auto add = [&](Value first, int64_t some, ValueRange carried) {
        SmallVector<Value> weights, parts, sums(carried);
        for (int64_t k = 0; k < some; ++k) {
          Value place = e.add(first, e.idx(k));
          Value lse = lseOf(place);
          weights.push_back(e.exp2(arith::SubFOp::create(e, lse, reference)));
          parts.push_back(loadPart(e, op, rowOf(place), d));
        }
        for (auto [weight, part] : llvm::zip(weights, parts)) {
          // What was never written has no weight, and may be anything.
          Value counts = arith::CmpFOp::create(e, arith::CmpFPredicate::UNE,
                                               weight, e.f32(0));
          Value wide = vector::BroadcastOp::create(e, f32x, weight);
          Value product = arith::MulFOp::create(e, wide, part);
          Value some = vector::BroadcastOp::create(
              e, VectorType::get({kChunk}, e.getI1Type()), counts);
          product = arith::SelectOp::create(e, some, product, nothing);
          sums[0] = arith::AddFOp::create(e, sums[0], weight);
          sums[1] = arith::AddFOp::create(e, sums[1], product);
        }
        return sums;
      };
      int64_t whole = n / kAhead * kAhead;
      if (whole > 0)
        carried = e.loop(zero, e.idx(whole), kAhead, carried,
                         [&](Value first, ValueRange carried) {
                           return add(first, kAhead, carried);
                         });
      if (whole < n)
        carried = add(e.idx(whole), n - whole, carried);
      Value factor = arith::DivFOp::create(e, e.f32(1), carried[0]);
      factor = arith::SelectOp::create(e, none, e.f32(0), factor);
      Value out = arith::MulFOp::create(
          e, carried[1], vector::BroadcastOp::create(e, f32x, factor));
      storeOut(e, o, aligned, out, {zero, head, query, d});
      if (Value lse = op.getLse()) {
        Value isFirst = e.cmp(arith::CmpIPredicate::eq, d, zero);
        e.when(isFirst, [&] {
          Value sum = arith::AddFOp::create(e, max, e.log2(carried[0]));
          Value finite = e.isFinite(max);
          Value log2 = arith::SelectOp::create(e, finite, sum, max);
          e.store(
              arith::MulFOp::create(e, log2, e.f32(static_cast<float>(M_LN2))),
              lse, {zero, head, query});
        });
      }
    });
    rewriter.eraseOp(op);
    return success();
  }

  static Value loadPart(WarpEmitter &e, MergeEntriesOp op, Value row, Value d) {
    Value partial = op.getPartial(), zero = e.idx(0);
    Type type = cast<MemRefType>(partial.getType()).getElementType();
    Value x =
        vector::LoadOp::create(e, VectorType::get({kChunk}, type), partial,
                               ValueRange{zero, zero, row, d},
                               /*nontemporal=*/true, llvm::MaybeAlign(16));
    return arith::ExtFOp::create(e, VectorType::get({kChunk}, e.getF32Type()),
                                 x);
  }

  static void storeOut(WarpEmitter &e, Value o, Value aligned, Value out,
                       ArrayRef<Value> at) {
    Type type = cast<MemRefType>(o.getType()).getElementType();
    if (!type.isF32())
      out = arith::TruncFOp::create(e, VectorType::get({kChunk}, type), out);
    e.when(
        aligned,
        [&] {
          vector::StoreOp::create(e, out, o, at, /*nontemporal=*/false,
                                  llvm::MaybeAlign(16));
        },
        [&] {
          for (int64_t k = 0; k < kChunk; ++k) {
            SmallVector<Value> one(at);
            one.back() = e.add(one.back(), e.idx(k));
            e.store(vector::ExtractOp::create(e, out, k), o, one);
          }
        });
  }
};

} // namespace

void pisa::populateGPUAttendEntriesPatterns(RewritePatternSet &patterns,
                                            const TaskContext &task) {
  patterns.add<AttendEntries, MergeEntries>(patterns.getContext(), task);
}
