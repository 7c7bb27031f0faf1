//===- Lists.cpp - List tile ops into loops over lanes -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// Every warp computes the same block by itself: no barrier.
struct NextBlock : TaskPattern<NextBlockOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(NextBlockOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value lists = op.getLists(), zero = e.idx(0);
    int64_t n = e.staticDim(lists, 3);
    Value after = e.toI32(op.getAfter()), limit = e.toI32(op.getLimit());
    // Four entries a load, where rows are whole groups of four.
    int64_t width = n % 4 == 0 ? 4 : 1;
    Value groups = e.mul(e.dim(lists, 2), e.idx(n / width));
    Value best = e.forEachLane(
        groups, limit, [&](Value i, ValueRange carried) -> SmallVector<Value> {
          SmallVector<Value> at = {zero, zero, e.div(i, n / width),
                                   e.mul(e.rem(i, n / width), e.idx(width))};
          auto type = VectorType::get({width}, e.getI32Type());
          Value entries =
              vector::LoadOp::create(e, type, lists, at, /*nontemporal=*/false,
                                     llvm::MaybeAlign(4 * width));
          Value least = carried[0];
          for (int64_t k = 0; k < width; ++k) {
            Value entry = vector::ExtractOp::create(e, entries, k);
            Value key = entry;
            if (op.getDivisor() > 1)
              key = arith::DivUIOp::create(e, entry, e.i32(op.getDivisor()));
            // Padding is larger than any limit as an unsigned number.
            Value later = e.cmp(arith::CmpIPredicate::sgt, key, after);
            Value real = e.cmp(arith::CmpIPredicate::sge, entry, e.i32(0));
            key = arith::SelectOp::create(e, e.both(later, real), key, limit);
            least = e.min(least, key);
          }
          return {least};
        })[0];
    rewriter.replaceOp(op, e.toIndex(e.minOfWarp(best)));
    return success();
  }
};

/// One warp a list: 32 children at a time, compacted by a vote.
struct ExpandNodes : TaskPattern<ExpandNodesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(ExpandNodesOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    ParamsAttr params = op.getParams();
    Value nodes = op.getNodes(), children = op.getChildren();
    int64_t n = e.staticDim(nodes, 3), fanout = params.getFanout();
    int64_t width = n * fanout;
    Value zero = e.idx(0);
    Positions positions =
        Positions::get(e, params, op.getKLen(), op.getQStart(),
                       op.getQueryOffset(), op.getQueryLength());
    PyramidLayout layout{params.getBlockSize(), fanout};
    Value childLevel = e.sub(op.getLevel(), e.idx(1));
    Value keysPerChild = e.mul(layout.buildSpan(e, e.getLoc(), childLevel),
                               e.idx(params.getBlockSize()));

    e.forEachWarp(e.dim(nodes, 2), [&](Value j) {
      // A child is visible if it starts below this.
      Value end = positions.kLen;
      if (params.getCausal())
        end = e.min(end, e.add(positions.ofBlock(e, j).second, e.idx(1)));
      Value lane = e.lane(), below = e.lanesBelow();
      Value count = e.loop(
          zero, e.idx(width), kWarpSize, e.i32(0),
          [&](Value base, ValueRange carried) -> SmallVector<Value> {
            Value i = e.add(base, lane);
            Value inside = e.cmp(arith::CmpIPredicate::slt, i, e.idx(width));
            Value safe = arith::SelectOp::create(e, inside, i, zero);
            Value node =
                e.toIndex(e.load(nodes, {zero, zero, j, e.div(safe, fanout)}));
            Value child =
                e.add(e.mul(node, e.idx(fanout)), e.rem(safe, fanout));
            Value visible = e.both(e.cmp(arith::CmpIPredicate::sge, node, zero),
                                   e.cmp(arith::CmpIPredicate::slt,
                                         e.mul(child, keysPerChild), end));
            visible = e.both(visible, inside);
            Value votes = e.ballot(visible);
            Value slot = e.add(carried[0], e.countOnes(e.both(votes, below)));
            e.when(visible, [&] {
              e.store(e.toI32(child), children,
                      {zero, zero, j, e.toIndex(slot)});
            });
            return {e.add(carried[0], e.countOnes(votes))};
          })[0];
      Value used = e.toIndex(count);
      e.forEachLane(e.sub(e.idx(width), used), [&](Value i) {
        e.store(e.i32(-1), children, {zero, zero, j, e.add(used, i)});
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// A bitmap of the nodes that any list names, and the sum of its words' ones
/// before each word: an entry's place is two loads away.
struct UnionNodes : TaskPattern<UnionNodesOp> {
  using TaskPattern::TaskPattern;

  struct Bitmap {
    Value bits;   ///< memref<words x i32>
    Value before; ///< ones in all words before, this pass and earlier ones
    Value begin;  ///< node of the first bit
    Value end;    ///< past the last bit

    /// Place of the set bit of node `begin + bit`.
    Value placeOf(WarpEmitter &e, Value bit) const {
      Value word = e.div(bit, kWordBits);
      Value one =
          arith::ShLIOp::create(e, e.i32(1), e.toI32(e.rem(bit, kWordBits)));
      Value below =
          arith::AndIOp::create(e, e.load(bits, word), e.sub(one, e.i32(1)));
      return e.add(e.load(before, word), e.countOnes(below));
    }
    Value isSet(WarpEmitter &e, Value bit) const {
      Value word = e.load(bits, e.div(bit, kWordBits));
      Value one =
          arith::ShLIOp::create(e, e.i32(1), e.toI32(e.rem(bit, kWordBits)));
      return e.cmp(arith::CmpIPredicate::ne,
                   arith::AndIOp::create(e, word, one), e.i32(0));
    }
  };

  LogicalResult matchAndRewrite(UnionNodesOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value nodes = op.getNodes(), zero = e.idx(0);
    int64_t n = e.staticDim(op.getLists(), 3);
    int64_t capacity = e.staticDim(nodes, 0);
    Bitmap bitmap;
    bitmap.bits = e.scratchView({kUnionWords}, e.getI32Type());
    bitmap.before =
        e.scratchView({kUnionWords}, e.getI32Type(), 4 * kUnionWords);
    Value entries = e.mul(e.dim(op.getLists(), 2), e.idx(n));
    auto at = [&](Value i) {
      return SmallVector<Value>{zero, zero, e.div(i, n), e.rem(i, n)};
    };

    e.forEachThread(
        entries, [&](Value i) { e.store(e.i32(-1), op.getPlaces(), at(i)); });
    // Levels of more nodes than the bitmap has bits take several passes.
    constexpr int64_t passNodes = kUnionWords * kWordBits;
    Value total =
        e.loop(zero, op.getLimit(), passNodes, e.i32(0),
               [&](Value begin, ValueRange carried) -> SmallVector<Value> {
                 bitmap.begin = begin;
                 bitmap.end =
                     e.min(e.add(begin, e.idx(passNodes)), op.getLimit());
                 return {pass(e, op, bitmap, entries, at, carried[0])};
               })[0];
    Value count = e.toIndex(total);
    e.forEachThread(e.sub(e.idx(capacity), count), [&](Value i) {
      e.store(e.i32(-1), nodes, e.add(count, i));
    });
    e.when(e.cmp(arith::CmpIPredicate::eq, e.thread(), zero),
           [&] { e.store(total, op.getCount(), zero); });
    rewriter.eraseOp(op);
    return success();
  }

  /// Places of the nodes in [begin, end), after `carried` earlier ones; returns
  /// how many there are up to here.
  static Value pass(WarpEmitter &e, UnionNodesOp op, const Bitmap &bitmap,
                    Value entries, function_ref<SmallVector<Value>(Value)> at,
                    Value carried) {
    Value zero = e.idx(0);
    Value size = e.sub(bitmap.end, bitmap.begin);
    Value words = arith::CeilDivSIOp::create(e, size, e.idx(kWordBits));
    // The bit of entry i, and whether it is of this pass.
    auto bitOf = [&](Value i) {
      Value entry = e.toIndex(e.load(op.getLists(), at(i)));
      Value mine = e.both(e.cmp(arith::CmpIPredicate::sge, entry, bitmap.begin),
                          e.cmp(arith::CmpIPredicate::slt, entry, bitmap.end));
      return std::pair(e.sub(entry, bitmap.begin), mine);
    };
    e.forEachThread(words, [&](Value w) { e.store(e.i32(0), bitmap.bits, w); });
    e.barrier();
    e.forEachThread(entries, [&](Value i) {
      Value bit, mine;
      std::tie(bit, mine) = bitOf(i);
      e.when(mine, [&] {
        Value one =
            arith::ShLIOp::create(e, e.i32(1), e.toI32(e.rem(bit, kWordBits)));
        memref::AtomicRMWOp::create(e, arith::AtomicRMWKind::ori, one,
                                    bitmap.bits,
                                    ValueRange{e.div(bit, kWordBits)});
      });
    });
    e.barrier();
    // Every warp sums, for all need the total; the first one writes.
    Value writes = e.cmp(arith::CmpIPredicate::eq, e.warp(), zero);
    Value total = e.loop(
        zero, words, kWarpSize, carried,
        [&](Value base, ValueRange sums) -> SmallVector<Value> {
          Value w = e.add(base, e.lane());
          Value inside = e.cmp(arith::CmpIPredicate::slt, w, words);
          Value safe = arith::SelectOp::create(e, inside, w, zero);
          Value ones = arith::SelectOp::create(
              e, inside, e.countOnes(e.load(bitmap.bits, safe)), e.i32(0));
          Value upTo = e.scan(ones);
          e.when(e.both(writes, inside), [&] {
            e.store(e.add(sums[0], e.sub(upTo, ones)), bitmap.before, w);
          });
          return {e.add(sums[0], e.lastLane(upTo))};
        })[0];
    e.barrier();
    e.forEachThread(size, [&](Value bit) {
      e.when(bitmap.isSet(e, bit), [&] {
        e.store(e.toI32(e.add(bitmap.begin, bit)), op.getNodes(),
                e.toIndex(bitmap.placeOf(e, bit)));
      });
    });
    e.forEachThread(entries, [&](Value i) {
      Value bit, mine;
      std::tie(bit, mine) = bitOf(i);
      e.when(mine,
             [&] { e.store(bitmap.placeOf(e, bit), op.getPlaces(), at(i)); });
    });
    // The next pass clears the bitmap.
    e.barrier();
    return total;
  }
};

/// One warp a list: candidates are ordered by an integer key (forced ones
/// first, then by score as docs/Spec.md section 2 says, padding last), and each
/// lane counts the keys that come before its own.
struct SelectTopk : TaskPattern<SelectTopkOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(SelectTopkOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getNodes()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    ParamsAttr params = op.getParams();
    Value nodes = op.getNodes(), kept = op.getKept();
    int64_t n = e.staticDim(nodes, 3), limit = e.staticDim(kept, 3);
    int64_t width = llvm::alignTo(static_cast<uint64_t>(n), kWarpSize);
    Value zero = e.idx(0);
    Positions positions =
        Positions::get(e, params, op.getKLen(), op.getQStart(),
                       op.getQueryOffset(), op.getQueryLength());
    Value span = e.idx(1);
    if (op.getLevel())
      span = PyramidLayout{params.getBlockSize(), params.getFanout()}.buildSpan(
          e, e.getLoc(), op.getLevel());
    Value keys = e.scratchView({task.numWarps, width}, e.getI32Type());
    Value warp = e.warp();

    e.forEachWarp(e.dim(nodes, 2), [&](Value j) {
      Value lane = e.lane(), below = e.lanesBelow();
      // Keeps entry i where `keep` says so, in order.
      auto append = [&](Value i, Value keep, Value slots) -> Value {
        Value votes = e.ballot(keep);
        Value slot = e.toIndex(e.add(slots, e.countOnes(e.both(votes, below))));
        e.when(keep, [&] {
          e.store(e.load(nodes, {zero, zero, j, i}), kept,
                  {zero, zero, j, slot});
          if (Value scores = op.getKeptScores())
            e.store(e.load(op.getScores(), {zero, zero, j, i}), scores,
                    {zero, zero, j, slot});
        });
        return e.add(slots, e.countOnes(votes));
      };
      Value fits = arith::ConstantOp::create(e, e.getBoolAttr(true));
      if (limit < n)
        fits = e.cmp(arith::CmpIPredicate::slt,
                     e.load(nodes, {zero, zero, j, e.idx(limit)}), e.i32(0));
      auto keepAll = [&] {
        return e.loop(
            zero, e.idx(width), kWarpSize, e.i32(0),
            [&](Value base, ValueRange carried) -> SmallVector<Value> {
              Value i = e.add(base, lane);
              Value inside = e.cmp(arith::CmpIPredicate::slt, i, e.idx(n));
              Value safe = arith::SelectOp::create(e, inside, i, zero);
              Value node = e.load(nodes, {zero, zero, j, safe});
              Value real = e.both(
                  inside, e.cmp(arith::CmpIPredicate::sge, node, e.i32(0)));
              return {append(safe, real, carried[0])};
            });
      };
      auto keepBest = [&] {
        // Keys of the list, 32 at a time.
        e.loop(zero, e.idx(width), kWarpSize, [&](Value base) {
          Value i = e.add(base, lane);
          Value inside = e.cmp(arith::CmpIPredicate::slt, i, e.idx(n));
          Value safe = arith::SelectOp::create(e, inside, i, zero);
          Value node = e.load(nodes, {zero, zero, j, safe});
          Value key =
              orderedKey(e, e.load(op.getScores(), {zero, zero, j, safe}));
          key = arith::SelectOp::create(
              e, isForced(e, positions, e.toIndex(node), span, j),
              e.i32(kForcedKey), key);
          Value real =
              e.both(inside, e.cmp(arith::CmpIPredicate::sge, node, e.i32(0)));
          key = arith::SelectOp::create(e, real, key, e.i32(kPaddingKey));
          e.store(key, keys, {warp, i});
        });
        e.syncWarp();
        return e.loop(
            zero, e.idx(width), kWarpSize, e.i32(0),
            [&](Value base, ValueRange carried) -> SmallVector<Value> {
              Value i = e.add(base, lane);
              Value key = e.load(keys, {warp, i});
              Value rank = countBefore(e, keys, warp, width, key, i);
              Value keep = e.both(
                  e.cmp(arith::CmpIPredicate::slt, rank, e.i32(limit)),
                  e.cmp(arith::CmpIPredicate::ne, key, e.i32(kPaddingKey)));
              return {append(i, keep, carried[0])};
            });
      };
      Value count = e.choose(fits, e.getI32Type(), keepAll, keepBest)[0];
      Value used = e.toIndex(count);
      e.forEachLane(e.sub(e.idx(limit), used), [&](Value i) {
        Value slot = e.add(used, i);
        e.store(e.i32(-1), kept, {zero, zero, j, slot});
        if (Value scores = op.getKeptScores())
          e.store(e.f32(e.negInf()), scores, {zero, zero, j, slot});
      });
      if (Value counts = op.getCount())
        e.when(e.cmp(arith::CmpIPredicate::eq, lane, zero),
               [&] { e.store(count, counts, {zero, zero, j}); });
      // The next list's keys overwrite these.
      e.syncWarp();
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// Entries with a higher key, and those with the same key and a lower index.
  static Value countBefore(WarpEmitter &e, Value keys, Value warp,
                           int64_t width, Value key, Value i) {
    auto four = VectorType::get({4}, e.getI32Type());
    Value index = e.toI32(i);
    // An entry before this one wins ties: it needs key >= mine, that is
    // key > mine - 1. Padding (the least integer) is never kept.
    Value tie = e.sub(key, e.i32(1));
    return e.loop(
        e.idx(0), e.idx(width), 4, e.i32(0),
        [&](Value base, ValueRange carried) -> SmallVector<Value> {
          Value others = vector::LoadOp::create(
              e, four, keys, ValueRange{warp, base}, /*nontemporal=*/false,
              llvm::MaybeAlign(16));
          Value rank = carried[0];
          for (int64_t k = 0; k < 4; ++k) {
            Value other = vector::ExtractOp::create(e, others, k);
            Value earlier = e.cmp(arith::CmpIPredicate::slt,
                                  e.add(e.toI32(base), e.i32(k)), index);
            Value mine = arith::SelectOp::create(e, earlier, tie, key);
            Value wins = e.cmp(arith::CmpIPredicate::sgt, other, mine);
            rank = e.add(rank, arith::ExtUIOp::create(e, e.getI32Type(), wins));
          }
          return {rank};
        })[0];
  }
};

/// Shared by all threads; the runtime reads what it leaves.
struct FillBuffer : TaskPattern<linalg::FillOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(linalg::FillOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value value = op.getInputs()[0], buffer = op.getOutputs()[0];
    if (Value fragment = task.fragments.lookup(getStorage(buffer))) {
      auto type = cast<MemRefType>(fragment.getType());
      auto rows = cast<VectorType>(type.getElementType());
      Value splat = e.spread(value, rows.getDimSize(1));
      e.loop(e.idx(0), e.idx(type.getDimSize(0)), 1,
             [&](Value place) { e.store(splat, fragment, place); });
      rewriter.eraseOp(op);
      return success();
    }
    forEachElement(e, buffer, [&](ValueRange indices) {
      e.store(value, buffer, indices);
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// All elements of a buffer, shared among the threads.
  static void forEachElement(WarpEmitter &e, Value buffer,
                             function_ref<void(ValueRange)> body) {
    auto type = cast<MemRefType>(buffer.getType());
    Value count = e.idx(1);
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      sizes.push_back(type.isDynamicDim(d) ? e.dim(buffer, d)
                                           : e.idx(type.getDimSize(d)));
      count = e.mul(count, sizes.back());
    }
    e.forEachThread(count, [&](Value i) {
      SmallVector<Value> indices(sizes.size());
      Value rest = i;
      for (int64_t d = sizes.size() - 1; d >= 0; --d) {
        indices[d] =
            d == 0 ? rest : Value(arith::RemUIOp::create(e, rest, sizes[d]));
        rest = d == 0 ? rest : Value(arith::DivUIOp::create(e, rest, sizes[d]));
      }
      body(indices);
    });
  }
};

struct CopyBuffer : TaskPattern<linalg::CopyOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(linalg::CopyOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value from = op.getInputs()[0], to = op.getOutputs()[0];
    FillBuffer::forEachElement(e, to, [&](ValueRange indices) {
      e.store(e.load(from, indices), to, indices);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Elementwise work on lengths and lists.
struct MapBuffer : TaskPattern<linalg::GenericOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumLoops() != op.getNumParallelLoops() ||
        llvm::any_of(op.getIndexingMapsArray(),
                     [](AffineMap map) { return !map.isIdentity(); }))
      return rewriter.notifyMatchFailure(op, "not elementwise");
    WarpEmitter e(rewriter, op, task);
    Value out = op.getOutputs()[0];
    FillBuffer::forEachElement(e, out, [&](ValueRange indices) {
      IRMapping mapping;
      for (auto [operand, argument] :
           llvm::zip(op->getOperands(), op.getBody()->getArguments()))
        if (!argument.use_empty())
          mapping.map(argument, e.load(operand, indices));
      for (Operation &inner : op.getBody()->without_terminator()) {
        if (auto index = dyn_cast<linalg::IndexOp>(inner))
          mapping.map(index, indices[index.getDim()]);
        else
          e.clone(inner, mapping);
      }
      Value result = op.getBody()->getTerminator()->getOperand(0);
      e.store(mapping.lookupOrDefault(result), out, indices);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateGPUListPatterns(RewritePatternSet &patterns,
                                   const TaskContext &task) {
  patterns.add<NextBlock, ExpandNodes, UnionNodes, SelectTopk, FillBuffer,
               CopyBuffer, MapBuffer>(patterns.getContext(), task);
}
