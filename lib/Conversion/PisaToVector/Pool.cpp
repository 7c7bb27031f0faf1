//===- Pool.cpp - Pyramid phases of one task into loops over vectors -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;
using namespace mlir::pisa;

/// Lanes carried at a time; a leaf's sum of any head dim is a few of these.
static constexpr int64_t kWidth = 64;

namespace {

/// Pieces of the head dimension at [0, 0, row, :] or [0, 0, row, a, :].
SmallVector<Value> rowIndices(Emitter &e, Value row, int64_t offset) {
  return {e.idx(0), e.idx(0), row, e.idx(offset)};
}

struct PoolLeaves : OpRewritePattern<PoolLeavesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PoolLeavesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getSums()))
      return rewriter.notifyMatchFailure(op, "not one task");
    Emitter e(rewriter, op);
    Value k = op.getK(), sums = op.getSums();
    int64_t headDim = cast<MemRefType>(k.getType()).getDimSize(3);
    int64_t blockSize = op.getParams().getBlockSize();
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    SmallVector<Piece> pieces = getPieces(headDim, kWidth);

    e.loop(e.idx(0), e.dim(sums, 2), 1, [&](Value i) {
      Value begin = e.mul(e.add(op.getLeafOffset(), i), e.idx(blockSize));
      Value end = e.min(e.add(begin, e.idx(blockSize)), kLen);
      SmallVector<Value> total = sumRows(e, k, pieces, begin, end, {});
      for (auto [piece, lanes] : llvm::zip(pieces, total))
        e.storeVector(lanes, sums, rowIndices(e, i, piece.offset));
      if (op.getAtoms())
        writeAtoms(e, op, pieces, i, begin, end, total);
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// Float32 sum of rows [begin, end) in index order, without row `except`.
  static SmallVector<Value> sumRows(Emitter &e, Value k, ArrayRef<Piece> pieces,
                                    Value begin, Value end, Value except) {
    SmallVector<Value> zeros;
    for (Piece piece : pieces)
      zeros.push_back(e.splat(0, piece.width));
    return e.loop(begin, end, 1, zeros, [&](Value row, ValueRange acc) {
      SmallVector<Value> next;
      for (auto [piece, lanes] : llvm::zip(pieces, acc)) {
        Value keys =
            e.loadF32(k, rowIndices(e, row, piece.offset), piece.width);
        Value sum = arith::AddFOp::create(e, lanes, keys);
        if (except)
          sum = arith::SelectOp::create(
              e, e.cmp(arith::CmpIPredicate::eq, row, except), lanes, sum);
        next.push_back(sum);
      }
      return next;
    });
  }

  static Value toFloat(Emitter &e, Value count) {
    return arith::SIToFPOp::create(e, e.getF32Type(), e.toI32(count));
  }

  static void writeAtoms(Emitter &e, PoolLeavesOp op, ArrayRef<Piece> pieces,
                         Value leaf, Value begin, Value end, ValueRange total) {
    Value k = op.getK(), zero = e.idx(0);
    Value count = toFloat(e, e.sub(end, begin));
    SmallVector<Value> mean;
    for (auto [piece, lanes] : llvm::zip(pieces, total))
      mean.push_back(
          arith::DivFOp::create(e, lanes, e.broadcast(count, piece.width)));

    // The key farthest from the unrounded mean, the lowest index among equals.
    SmallVector<Value> farthest = e.loop(
        begin, end, 1, {e.f32(-1), e.idx(-1)},
        [&](Value row, ValueRange best) -> SmallVector<Value> {
          Value distance = e.f32(0);
          for (auto [piece, center] : llvm::zip(pieces, mean)) {
            Value keys =
                e.loadF32(k, rowIndices(e, row, piece.offset), piece.width);
            Value diff = arith::SubFOp::create(e, keys, center);
            Value square = arith::MulFOp::create(e, diff, diff);
            distance = arith::AddFOp::create(e, distance, e.reduceAdd(square));
          }
          // The first key is taken whatever its distance, NaN included.
          Value first = e.cmp(arith::CmpIPredicate::slt, best[1], zero);
          Value better = arith::OrIOp::create(
              e, first,
              arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, distance,
                                    best[0]));
          return {arith::SelectOp::create(e, better, distance, best[0]),
                  arith::SelectOp::create(e, better, row, best[1])};
        });
    Value outlier = farthest[1];
    e.store(e.toI32(outlier), op.getOutlier(), {zero, zero, leaf});

    int64_t numAtoms = op.getParams().getLeafAtoms();
    int64_t subBlock = op.getParams().getBlockSize() / numAtoms;
    e.loop(zero, e.idx(numAtoms), 1, [&](Value a) {
      Value first = e.add(begin, e.mul(a, e.idx(subBlock)));
      Value last = e.min(e.add(first, e.idx(subBlock)), end);
      SmallVector<Value> sum = sumRows(e, k, pieces, first, last, outlier);
      Value keys = e.max(e.sub(last, first), zero);
      Value holds = e.both(e.cmp(arith::CmpIPredicate::sge, outlier, first),
                           e.cmp(arith::CmpIPredicate::slt, outlier, last));
      keys = e.sub(keys, arith::SelectOp::create(e, holds, e.idx(1), zero));
      // An empty atom is zero: its sum is, and so divided by one.
      Value divisor = toFloat(e, e.max(keys, e.idx(1)));
      for (auto [piece, lanes] : llvm::zip(pieces, sum)) {
        Value atom =
            arith::DivFOp::create(e, lanes, e.broadcast(divisor, piece.width));
        e.storeF32(atom, op.getAtoms(),
                   {zero, zero, leaf, a, e.idx(piece.offset)});
      }
    });
  }
};

struct PoolNodes : OpRewritePattern<PoolNodesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PoolNodesOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getSums()))
      return rewriter.notifyMatchFailure(op, "not one task");
    Emitter e(rewriter, op);
    Value sums = op.getSums(), pyramid = op.getPyramid();
    int64_t headDim = cast<MemRefType>(sums.getType()).getDimSize(3);
    ParamsAttr params = op.getParams();
    PyramidLayout layout{params.getBlockSize(), params.getFanout()};
    SmallVector<Piece> pieces = getPieces(headDim, kWidth);
    Value zero = e.idx(0), one = e.idx(1), g = e.idx(params.getFanout());
    Value kLen = e.toIndex(e.load(op.getKLen(), zero));
    Value leaves = layout.buildNumLeaves(e, e.getLoc(), e.dim(op.getK(), 2));
    Value levels = layout.buildNumLevels(e, e.getLoc(), leaves);

    // (offset of this level, its nodes, keys of one node, offset of the level
    // below) as the loop climbs.
    SmallVector<Value> first = {zero, leaves, e.idx(params.getBlockSize()),
                                zero};
    e.loop(
        zero, levels, 1, first,
        [&](Value above, ValueRange state) -> SmallVector<Value> {
          Value offset = state[0], n = state[1], keysPerNode = state[2];
          Value isLeaf = e.cmp(arith::CmpIPredicate::eq, above, zero);
          e.loop(zero, n, 1, [&](Value i) {
            Value row = e.add(offset, i);
            e.when(
                isLeaf,
                [&] {
                  for (Piece piece : pieces)
                    e.storeVector(e.loadVector(op.getLeafSums(),
                                               rowIndices(e, i, piece.offset),
                                               piece.width),
                                  sums, rowIndices(e, row, piece.offset));
                },
                [&] {
                  sumChildren(
                      e, sums, pieces, row, state[3], e.mul(i, g),
                      e.min(e.mul(e.add(i, one), g), e.sub(offset, state[3])));
                });
            writeSummary(e, sums, pyramid, pieces, row,
                         e.sub(kLen, e.mul(i, keysPerNode)), keysPerNode);
          });
          if (op.getOpenSums())
            writeOpenSum(e, op, pieces, above, isLeaf, state, kLen, g);
          return {e.add(offset, n), arith::CeilDivSIOp::create(e, n, g),
                  e.mul(keysPerNode, g), offset};
        });
    rewriter.eraseOp(op);
    return success();
  }

  /// sums[row] = sum over c in [begin, end) of sums[base + c], in index order.
  static SmallVector<Value> addChildren(Emitter &e, Value sums,
                                        ArrayRef<Piece> pieces, Value base,
                                        Value begin, Value end) {
    SmallVector<Value> zeros;
    for (Piece piece : pieces)
      zeros.push_back(e.splat(0, piece.width));
    return e.loop(begin, end, 1, zeros, [&](Value c, ValueRange acc) {
      SmallVector<Value> next;
      for (auto [piece, lanes] : llvm::zip(pieces, acc)) {
        Value child = e.loadVector(
            sums, rowIndices(e, e.add(base, c), piece.offset), piece.width);
        next.push_back(arith::AddFOp::create(e, lanes, child));
      }
      return next;
    });
  }

  static void sumChildren(Emitter &e, Value sums, ArrayRef<Piece> pieces,
                          Value row, Value base, Value begin, Value end) {
    SmallVector<Value> total = addChildren(e, sums, pieces, base, begin, end);
    for (auto [piece, lanes] : llvm::zip(pieces, total))
      e.storeVector(lanes, sums, rowIndices(e, row, piece.offset));
  }

  /// pyramid[row] = sums[row] / clamp(left, 0, keysPerNode), zero for no key.
  static void writeSummary(Emitter &e, Value sums, Value pyramid,
                           ArrayRef<Piece> pieces, Value row, Value left,
                           Value keysPerNode) {
    // The sum of a node without keys is zero, and so is zero over one.
    Value count = e.max(e.min(left, keysPerNode), e.idx(1));
    Value divisor = PoolLeaves::toFloat(e, count);
    for (Piece piece : pieces) {
      Value sum =
          e.loadVector(sums, rowIndices(e, row, piece.offset), piece.width);
      Value mean =
          arith::DivFOp::create(e, sum, e.broadcast(divisor, piece.width));
      e.storeF32(mean, pyramid, rowIndices(e, row, piece.offset));
    }
  }

  /// open_sums[above] = the complete parts of the node that is open at kLen.
  static void writeOpenSum(Emitter &e, PoolNodesOp op, ArrayRef<Piece> pieces,
                           Value above, Value isLeaf, ValueRange state,
                           Value kLen, Value g) {
    Value sums = op.getSums(), keysPerNode = state[2];
    Value node = arith::DivUIOp::create(e, kLen, keysPerNode);
    Value open = e.cmp(arith::CmpIPredicate::ne,
                       arith::RemUIOp::create(e, kLen, keysPerNode), e.idx(0));
    SmallVector<Type> types;
    for (Piece piece : pieces)
      types.push_back(VectorType::get({piece.width}, e.getF32Type()));
    SmallVector<Value> sum = e.choose(
        e.both(open, isLeaf), types,
        [&] {
          // A leaf's parts are its keys, and each key is complete.
          SmallVector<Value> lanes;
          for (Piece piece : pieces)
            lanes.push_back(e.loadVector(
                sums, rowIndices(e, e.add(state[0], node), piece.offset),
                piece.width));
          return lanes;
        },
        [&] {
          // Complete children of the open node: [node g, kLen / keys of a
          // child).
          Value keysPerChild = arith::DivUIOp::create(e, keysPerNode, g);
          Value complete =
              arith::DivUIOp::create(e, kLen, e.max(keysPerChild, e.idx(1)));
          Value begin = e.mul(node, g);
          Value end = arith::SelectOp::create(e, open, complete, begin);
          return addChildren(e, sums, pieces, state[3], begin, end);
        });
    for (auto [piece, lanes] : llvm::zip(pieces, sum))
      e.storeVector(lanes, op.getOpenSums(),
                    rowIndices(e, above, piece.offset));
  }
};

} // namespace

void pisa::populatePoolPatterns(RewritePatternSet &patterns) {
  patterns.add<PoolLeaves, PoolNodes>(patterns.getContext());
}
