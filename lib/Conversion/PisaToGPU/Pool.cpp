//===- Pool.cpp - Pyramid phases of one task into loops over threads -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

/// Loads in flight before the sums that wait for them.
static constexpr int64_t kAhead = 8;

namespace {

Value toFloat(Emitter &e, Value count) {
  return arith::SIToFPOp::create(e, e.getF32Type(), e.toI32(count));
}

void storeRounded(WarpEmitter &e, Value x, Value target, ValueRange indices) {
  Type type = cast<MemRefType>(target.getType()).getElementType();
  if (!type.isF32())
    x = arith::TruncFOp::create(e, type, x);
  e.store(x, target, indices);
}

/// Sum of f(begin) .. f(end - 1) in index order; `most` bounds their number and
/// is a multiple of `kAhead` or small.
Value sumInOrder(WarpEmitter &e, Value begin, Value end, int64_t most,
                 function_ref<Value(Value)> term) {
  auto slowly = [&] {
    return e.loop(begin, end, 1, e.f32(0),
                  [&](Value i, ValueRange sum) -> SmallVector<Value> {
                    return {arith::AddFOp::create(e, sum[0], term(i))};
                  });
  };
  if (most % kAhead != 0)
    return slowly()[0];
  Value whole = e.cmp(arith::CmpIPredicate::eq, e.sub(end, begin), e.idx(most));
  return e.choose(
      whole, e.getF32Type(),
      [&] {
        return e.loop(e.idx(0), e.idx(most), kAhead, e.f32(0),
                      [&](Value base, ValueRange sum) -> SmallVector<Value> {
                        SmallVector<Value> terms;
                        Value first = e.add(begin, base);
                        for (int64_t k = 0; k < kAhead; ++k)
                          terms.push_back(term(e.add(first, e.idx(k))));
                        Value total = sum[0];
                        for (Value x : terms)
                          total = arith::AddFOp::create(e, total, x);
                        return {total};
                      });
      },
      slowly)[0];
}

struct PoolLeaves : TaskPattern<PoolLeavesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PoolLeavesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getSums()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    Value k = op.getK(), sums = op.getSums(), zero = e.idx(0);
    int64_t headDim = e.staticDim(k, 3);
    int64_t blockSize = op.getParams().getBlockSize();
    Value kLen = e.toIndex(e.load(op.getKLen(), zero));
    Value numLeaves = e.dim(sums, 2);
    auto rangeOf = [&](Value leaf) {
      Value begin = e.mul(e.add(op.getLeafOffset(), leaf), e.idx(blockSize));
      Value end = e.min(e.add(begin, e.idx(blockSize)), kLen);
      return std::pair(begin, end);
    };
    e.forEachThread(e.mul(numLeaves, e.idx(headDim)), [&](Value i) {
      Value leaf = e.div(i, headDim), d = e.rem(i, headDim);
      auto [begin, end] = rangeOf(leaf);
      Value sum = sumInOrder(e, begin, end, blockSize, [&](Value row) {
        return e.loadAsF32(k, {zero, zero, row, d});
      });
      e.store(sum, sums, {zero, zero, leaf, d});
    });
    if (op.getAtoms())
      e.forEachWarp(numLeaves, [&](Value leaf) {
        auto [begin, end] = rangeOf(leaf);
        writeAtoms(e, op, leaf, begin, end);
      });
    rewriter.eraseOp(op);
    return success();
  }

  /// One warp: lanes share the head dimension.
  static void writeAtoms(WarpEmitter &e, PoolLeavesOp op, Value leaf,
                         Value begin, Value end) {
    Value k = op.getK(), zero = e.idx(0);
    int64_t headDim = e.staticDim(k, 3);
    int64_t blockSize = op.getParams().getBlockSize();
    int64_t perLane = llvm::divideCeil(headDim, kWarpSize);
    SmallVector<Value> columns, inside;
    for (int64_t p = 0; p < perLane; ++p) {
      Value d = e.add(e.lane(), e.idx(p * kWarpSize));
      inside.push_back(e.cmp(arith::CmpIPredicate::slt, d, e.idx(headDim)));
      columns.push_back(arith::SelectOp::create(e, inside.back(), d, zero));
    }
    auto sum = [&](Value from, Value to, int64_t most, Value d, Value except) {
      return sumInOrder(e, from, to, most, [&](Value row) -> Value {
        Value x = e.loadAsF32(k, {zero, zero, row, d});
        if (!except)
          return x;
        // x - x is NaN for an infinite key: it must not be added at all.
        return arith::SelectOp::create(
            e, e.cmp(arith::CmpIPredicate::eq, row, except), e.f32(0), x);
      });
    };
    Value count = toFloat(e, e.sub(end, begin));
    SmallVector<Value> mean;
    for (Value d : columns)
      mean.push_back(
          arith::DivFOp::create(e, sum(begin, end, blockSize, d, {}), count));

    // The key farthest from the unrounded mean, the lowest index among equals.
    Value outlier = e.loop(
        begin, end, 1, {e.f32(-1), e.idx(-1)},
        [&](Value row, ValueRange best) -> SmallVector<Value> {
          Value distance = e.f32(0);
          for (int64_t p = 0; p < perLane; ++p) {
            Value x = e.loadAsF32(k, {zero, zero, row, columns[p]});
            Value diff = arith::SubFOp::create(e, x, mean[p]);
            Value square = arith::MulFOp::create(e, diff, diff);
            square = arith::SelectOp::create(e, inside[p], square, e.f32(0));
            distance = arith::AddFOp::create(e, distance, square);
          }
          for (int32_t step = kWarpSize / 2; step > 0; step /= 2) {
            Value other = gpu::ShuffleOp::create(e, distance, step, kWarpSize,
                                                 gpu::ShuffleMode::XOR)
                              .getShuffleResult();
            distance = arith::AddFOp::create(e, distance, other);
          }
          // The first key is taken whatever its distance, NaN included.
          Value first = e.cmp(arith::CmpIPredicate::slt, best[1], zero);
          Value better = arith::OrIOp::create(
              e, first,
              arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, distance,
                                    best[0]));
          return {arith::SelectOp::create(e, better, distance, best[0]),
                  arith::SelectOp::create(e, better, row, best[1])};
        })[1];
    Value isFirst = e.cmp(arith::CmpIPredicate::eq, e.lane(), zero);
    e.when(isFirst, [&] {
      e.store(e.toI32(outlier), op.getOutlier(), {zero, zero, leaf});
    });

    int64_t numAtoms = op.getParams().getLeafAtoms();
    int64_t subBlock = blockSize / numAtoms;
    e.loop(zero, e.idx(numAtoms), 1, [&](Value a) {
      Value first = e.add(begin, e.mul(a, e.idx(subBlock)));
      Value last = e.min(e.add(first, e.idx(subBlock)), end);
      Value keys = e.max(e.sub(last, first), zero);
      Value holds = e.both(e.cmp(arith::CmpIPredicate::sge, outlier, first),
                           e.cmp(arith::CmpIPredicate::slt, outlier, last));
      keys = e.sub(keys, arith::SelectOp::create(e, holds, e.idx(1), zero));
      // An empty atom is zero: its sum is, and so divided by one.
      Value divisor = toFloat(e, e.max(keys, e.idx(1)));
      for (int64_t p = 0; p < perLane; ++p) {
        Value total = sum(first, last, subBlock, columns[p], outlier);
        Value atom = arith::DivFOp::create(e, total, divisor);
        e.when(inside[p], [&] {
          storeRounded(e, atom, op.getAtoms(),
                       {zero, zero, leaf, a, columns[p]});
        });
      }
    });
  }
};

/// One task a sequence and head; a barrier between levels.
struct PoolNodes : TaskPattern<PoolNodesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PoolNodesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getSums()))
      return rewriter.notifyMatchFailure(op, "not one task");
    WarpEmitter e(rewriter, op, task);
    Value sums = op.getSums(), pyramid = op.getPyramid();
    int64_t headDim = e.staticDim(sums, 3);
    ParamsAttr params = op.getParams();
    int64_t fanout = params.getFanout();
    PyramidLayout layout{params.getBlockSize(), fanout};
    Value zero = e.idx(0), one = e.idx(1), g = e.idx(fanout);
    Value kLen = e.toIndex(e.load(op.getKLen(), zero));
    Value leaves = layout.buildNumLeaves(e, e.getLoc(), e.dim(op.getK(), 2));
    Value levels = layout.buildNumLevels(e, e.getLoc(), leaves);

    // (offset of this level, its nodes, keys of one node, offset of the level
    // below) as the loop climbs.
    SmallVector<Value> first = {zero, leaves, e.idx(params.getBlockSize()),
                                zero};
    e.loop(zero, levels, 1, first,
           [&](Value above, ValueRange state) -> SmallVector<Value> {
             Value offset = state[0], n = state[1], keysPerNode = state[2];
             Value below = state[3];
             Value isLeaf = e.cmp(arith::CmpIPredicate::eq, above, zero);
             e.forEachThread(e.mul(n, e.idx(headDim)), [&](Value i) {
               Value node = e.div(i, headDim), d = e.rem(i, headDim);
               Value row = e.add(offset, node);
               Value sum = e.choose(
                   isLeaf, e.getF32Type(),
                   [&] {
                     return SmallVector<Value>{
                         e.load(op.getLeafSums(), {zero, zero, node, d})};
                   },
                   [&] {
                     Value begin = e.mul(node, g);
                     Value end = e.min(e.add(begin, g), e.sub(offset, below));
                     return SmallVector<Value>{
                         addChildren(e, sums, below, begin, end, d)};
                   })[0];
               e.store(sum, sums, {zero, zero, row, d});
               // The sum of a node without keys is zero, and so is zero over
               // one.
               Value left = e.sub(kLen, e.mul(node, keysPerNode));
               Value count = e.max(e.min(left, keysPerNode), one);
               Value mean = arith::DivFOp::create(e, sum, toFloat(e, count));
               storeRounded(e, mean, pyramid, {zero, zero, row, d});
             });
             e.barrier();
             if (op.getOpenSums())
               writeOpenSum(e, op, above, isLeaf, state, kLen, g);
             return {e.add(offset, n), arith::CeilDivSIOp::create(e, n, g),
                     e.mul(keysPerNode, g), offset};
           });
    rewriter.eraseOp(op);
    return success();
  }

  /// Sum over c in [begin, end) of sums[base + c], in index order.
  static Value addChildren(WarpEmitter &e, Value sums, Value base, Value begin,
                           Value end, Value d) {
    return e.loop(begin, end, 1, e.f32(0),
                  [&](Value c, ValueRange sum) -> SmallVector<Value> {
                    Value child =
                        e.load(sums, {e.idx(0), e.idx(0), e.add(base, c), d});
                    return {arith::AddFOp::create(e, sum[0], child)};
                  })[0];
  }

  /// open_sums[above] = the complete parts of the node that is open at kLen.
  static void writeOpenSum(WarpEmitter &e, PoolNodesOp op, Value above,
                           Value isLeaf, ValueRange state, Value kLen,
                           Value g) {
    Value sums = op.getSums(), keysPerNode = state[2], zero = e.idx(0);
    int64_t headDim = e.staticDim(sums, 3);
    Value node = arith::DivUIOp::create(e, kLen, keysPerNode);
    Value open = e.cmp(arith::CmpIPredicate::ne,
                       arith::RemUIOp::create(e, kLen, keysPerNode), zero);
    e.forEachThread(e.idx(headDim), [&](Value d) {
      Value sum = e.choose(
          e.both(open, isLeaf), e.getF32Type(),
          [&] {
            // A leaf's parts are its keys, and each key is complete.
            return SmallVector<Value>{
                e.load(sums, {zero, zero, e.add(state[0], node), d})};
          },
          [&] {
            // Complete children of the open node: [node g, kLen / keys of a
            // child).
            Value keysPerChild = arith::DivUIOp::create(e, keysPerNode, g);
            Value complete =
                arith::DivUIOp::create(e, kLen, e.max(keysPerChild, e.idx(1)));
            Value begin = e.mul(node, g);
            Value end = arith::SelectOp::create(e, open, complete, begin);
            return SmallVector<Value>{
                addChildren(e, sums, state[3], begin, end, d)};
          })[0];
      e.store(sum, op.getOpenSums(), {zero, zero, above, d});
    });
  }
};

} // namespace

void pisa::populateGPUPoolPatterns(RewritePatternSet &patterns,
                                   const TaskContext &task) {
  patterns.add<PoolLeaves, PoolNodes>(patterns.getContext(), task);
}
