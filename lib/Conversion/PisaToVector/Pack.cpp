//===- Pack.cpp - Packing tile ops into loops over vectors ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

/// Lanes of one load; LLVM splits what is wider than a register.
static constexpr int64_t kLanes = 16;

namespace {

struct PackQueries : OpRewritePattern<PackQueriesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PackQueriesOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value q = op.getQ(), packed = op.getPacked();
    auto type = cast<MemRefType>(packed.getType());
    int64_t paddedRows = type.getDimSize(1), headDim = type.getDimSize(2);
    int64_t heads = cast<MemRefType>(q.getType()).getDimSize(1);
    int64_t rows = op.getQueryBlock() * heads;
    // Base-2 logits: exp(x) = 2^(x log2(e)).
    Value factor = arith::MulFOp::create(e, op.getScale(),
                                         e.f32(static_cast<float>(M_LOG2E)));
    Value numQueries = e.dim(q, 2);
    SmallVector<Piece> pieces = getPieces(headDim, kLanes);

    e.loop(e.idx(0), e.dim(packed, 0), 1, [&](Value j) {
      e.loop(e.idx(0), e.idx(paddedRows), 1, [&](Value r) {
        Value query =
            e.add(e.mul(j, e.idx(op.getQueryBlock())), e.div(r, heads));
        Value real =
            e.both(e.cmp(arith::CmpIPredicate::slt, r, e.idx(rows)),
                   e.cmp(arith::CmpIPredicate::slt, query, numQueries));
        e.when(
            real,
            [&] {
              for (Piece piece : pieces) {
                Value lanes = e.loadF32(
                    q, {e.idx(0), e.rem(r, heads), query, e.idx(piece.offset)},
                    piece.width);
                Value scaled = arith::MulFOp::create(
                    e, lanes, e.broadcast(factor, piece.width));
                e.storeVector(scaled, packed, {j, r, e.idx(piece.offset)});
              }
            },
            [&] {
              for (Piece piece : pieces)
                e.storeVector(e.splat(0, piece.width), packed,
                              {j, r, e.idx(piece.offset)});
            });
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PackColumns : OpRewritePattern<PackColumnsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PackColumnsOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getListed())
      return rewriter.notifyMatchFailure(op, "gathers listed nodes");
    Emitter e(rewriter, op);
    Value source = op.getSource(), columns = op.getColumns();
    auto type = cast<MemRefType>(columns.getType());
    int64_t headDim = type.getDimSize(0), numColumns = type.getDimSize(1);
    int64_t group = op.getGroup(), nodes = op.getNodes();
    if (numColumns % kLanes != 0)
      return rewriter.notifyMatchFailure(op, "columns are not whole vectors");
    if (nodes != 1 && nodes % kLanes != 0)
      return rewriter.notifyMatchFailure(op, "nodes are not whole vectors");
    // Lanes of consecutive columns are consecutive keys, or consecutive nodes'
    // children of one number.
    int64_t step = nodes == 1 ? 1 : group;
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    Value keysPerRow = op.getKeysPerRow();
    Value firstRow = e.mul(op.getBlock(), e.idx(group * nodes));

    e.loop(e.idx(0), e.idx(numColumns), kLanes, [&](Value column) {
      // Row of lane t: row0 + t step; lanes past the block have no row.
      Value child = e.div(column, nodes);
      Value node = e.rem(column, nodes);
      Value row0 = e.add(firstRow, e.add(e.mul(node, e.idx(group)), child));
      Value left = e.sub(e.idx(group * nodes), column);

      // Keys that lane t stands for: clamp(kLen - row p, 0, p), in i64: row p
      // may exceed int32 by a block.
      auto i64x = VectorType::get({kLanes}, e.getI64Type());
      auto toVector = [&](Value index) -> Value {
        Value i = arith::IndexCastOp::create(e, e.getI64Type(), index);
        return vector::BroadcastOp::create(e, i64x, i);
      };
      Value lane = arith::ExtSIOp::create(e, i64x, e.iota(kLanes));
      Value steps = arith::MulIOp::create(e, lane, toVector(e.idx(step)));
      Value rows = arith::AddIOp::create(e, toVector(row0), steps);
      Value before = arith::MulIOp::create(e, rows, toVector(keysPerRow));
      Value count = arith::SubIOp::create(e, toVector(kLen), before);
      Value zero64 = toVector(e.idx(0));
      count = arith::MaxSIOp::create(e, count, zero64);
      count = arith::MinSIOp::create(e, count, toVector(keysPerRow));
      Value inBlock = arith::CmpIOp::create(e, arith::CmpIPredicate::slt, lane,
                                            toVector(left));
      if (nodes == 1)
        count = arith::SelectOp::create(e, inBlock, count, zero64);
      Value some =
          arith::CmpIOp::create(e, arith::CmpIPredicate::sgt, count, zero64);
      auto f32x = VectorType::get({kLanes}, e.getF32Type());
      Value bias = e.log2(arith::SIToFPOp::create(e, f32x, count));
      bias =
          arith::SelectOp::create(e, some, bias, e.splat(e.negInf(), kLanes));
      // Columns past group x nodes (when nodes > 1) are whole vectors.
      if (nodes != 1) {
        Value real = e.cmp(arith::CmpIPredicate::sgt, left, e.idx(0));
        bias =
            arith::SelectOp::create(e, real, bias, e.splat(e.negInf(), kLanes));
        some = e.choose(
            real, some.getType(), [&] { return SmallVector<Value>{some}; },
            [&] {
              Value none = arith::ConstantOp::create(
                  e, DenseElementsAttr::get(
                         VectorType::get({kLanes}, e.getI1Type()), false));
              return SmallVector<Value>{none};
            })[0];
      }
      e.storeVector(bias, op.getBias(), column);

      Value all =
          vector::ReductionOp::create(e, vector::CombiningKind::AND, some);
      Value base = e.add(op.getRowBase(), row0);
      auto rowOf = [&](int64_t t) { return e.add(base, e.idx(t * step)); };
      e.when(
          all,
          [&] {
            auto transpose = [&](Value d, int64_t width) {
              auto tileType = VectorType::get({kLanes, width}, e.getF32Type());
              Value tile = arith::ConstantOp::create(
                  e, DenseElementsAttr::get(tileType, 0.0f));
              for (int64_t t = 0; t < kLanes; ++t) {
                Value keys =
                    e.loadF32(source, {e.idx(0), e.idx(0), rowOf(t), d}, width);
                tile = vector::InsertOp::create(e, keys, tile, t);
              }
              Value turned =
                  vector::TransposeOp::create(e, tile, ArrayRef<int64_t>{1, 0});
              for (int64_t i = 0; i < width; ++i)
                e.storeVector(vector::ExtractOp::create(e, turned, i), columns,
                              {e.add(d, e.idx(i)), column});
            };
            int64_t whole = llvm::alignDown<uint64_t>(headDim, kLanes);
            if (whole > 0)
              e.loop(e.idx(0), e.idx(whole), kLanes,
                     [&](Value d) { transpose(d, kLanes); });
            if (whole < headDim)
              transpose(e.idx(whole), headDim - whole);
          },
          [&] {
            // The end of the sequence: lane by lane, reading real rows only.
            e.loop(e.idx(0), e.idx(kLanes), 1, [&](Value t) {
              Value present = vector::ExtractOp::create(e, some, t);
              Value row = e.add(base, e.mul(t, e.idx(step)));
              Value target = e.add(column, t);
              e.loop(e.idx(0), e.idx(headDim), 1, [&](Value d) {
                Value value = e.choose(
                    present, e.getF32Type(),
                    [&] {
                      Value x = e.load(source, {e.idx(0), e.idx(0), row, d});
                      if (!x.getType().isF32())
                        x = arith::ExtFOp::create(e, e.getF32Type(), x);
                      return SmallVector<Value>{x};
                    },
                    [&] { return SmallVector<Value>{e.f32(0)}; })[0];
                e.store(value, columns, {d, target});
              });
            });
          });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PackAtoms : OpRewritePattern<PackAtomsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PackAtomsOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value columns = op.getColumns(), bias = op.getBias();
    auto type = cast<MemRefType>(columns.getType());
    int64_t headDim = type.getDimSize(0), numColumns = type.getDimSize(1);
    int64_t numAtoms = cast<MemRefType>(op.getAtoms().getType()).getDimSize(3);
    int64_t nodes = op.getNodes(), blockSize = op.getBlockSize();
    int64_t subBlock = blockSize / numAtoms;
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    Value zero = e.idx(0);

    // Writes one column: `row` of a source if it stands for `count` > 0 keys.
    auto writeColumn = [&](Value column, Value count,
                           function_ref<Value(Value)> element) {
      Value some = e.cmp(arith::CmpIPredicate::sgt, count, zero);
      Value asFloat =
          arith::SIToFPOp::create(e, e.getF32Type(), e.toI32(count));
      Value weight =
          arith::SelectOp::create(e, some, e.log2(asFloat), e.f32(e.negInf()));
      e.store(weight, bias, column);
      e.loop(zero, e.idx(headDim), 1, [&](Value d) {
        Value value = e.choose(
            some, e.getF32Type(),
            [&] {
              Value x = element(d);
              if (!x.getType().isF32())
                x = arith::ExtFOp::create(e, e.getF32Type(), x);
              return SmallVector<Value>{x};
            },
            [&] { return SmallVector<Value>{e.f32(0)}; })[0];
        e.store(value, columns, {d, column});
      });
    };

    Value numLeaves = e.dim(op.getAtoms(), 2);
    e.loop(zero, e.idx(nodes), 1, [&](Value n) {
      Value leaf = e.add(e.mul(op.getBlock(), e.idx(nodes)), n);
      Value exists = e.cmp(arith::CmpIPredicate::slt, leaf, numLeaves);
      Value safeLeaf = e.min(leaf, e.sub(numLeaves, e.idx(1)));
      Value first = e.mul(leaf, e.idx(blockSize));
      Value stored = e.toIndex(e.load(op.getOutlier(), {zero, zero, safeLeaf}));
      Value outlier = arith::SelectOp::create(e, exists, stored, e.idx(-1));
      e.loop(zero, e.idx(numAtoms), 1, [&](Value a) {
        Value begin = e.add(first, e.mul(a, e.idx(subBlock)));
        Value count = e.max(e.min(e.sub(kLen, begin), e.idx(subBlock)), zero);
        Value holds = e.both(e.cmp(arith::CmpIPredicate::sge, outlier, begin),
                             e.cmp(arith::CmpIPredicate::slt, outlier,
                                   e.add(begin, e.idx(subBlock))));
        count = e.sub(count, arith::SelectOp::create(e, holds, e.idx(1), zero));
        count = arith::SelectOp::create(e, exists, count, zero);
        writeColumn(e.add(e.mul(a, e.idx(nodes)), n), count, [&](Value d) {
          return e.load(op.getAtoms(), {zero, zero, safeLeaf, a, d});
        });
      });
      // An outlier that `pool_leaves` did not write may be anything.
      Value hasOutlier =
          e.both(e.cmp(arith::CmpIPredicate::sge, outlier, zero),
                 e.cmp(arith::CmpIPredicate::slt, outlier, kLen));
      writeColumn(
          e.add(e.idx(numAtoms * nodes), n),
          arith::SelectOp::create(e, hasOutlier, e.idx(1), zero),
          [&](Value d) { return e.load(op.getK(), {zero, zero, outlier, d}); });
    });
    // Columns past the atoms stand for nothing.
    e.loop(e.idx((numAtoms + 1) * nodes), e.idx(numColumns), 1, [&](Value c) {
      writeColumn(c, zero, [&](Value) { return e.f32(0); });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PackValues : OpRewritePattern<PackValuesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PackValuesOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value packed = op.getPacked();
    auto type = cast<MemRefType>(packed.getType());
    int64_t blockSize = type.getDimSize(0);
    SmallVector<Piece> pieces = getPieces(type.getDimSize(1), kLanes);
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    Value first = e.mul(op.getBlock(), e.idx(blockSize));
    e.loop(e.idx(0), e.idx(blockSize), 1, [&](Value r) {
      Value row = e.add(first, r);
      e.when(
          e.cmp(arith::CmpIPredicate::slt, row, kLen),
          [&] {
            for (Piece piece : pieces) {
              Value d = e.idx(piece.offset);
              e.storeVector(e.loadF32(op.getV(), {e.idx(0), e.idx(0), row, d},
                                      piece.width),
                            packed, {r, d});
            }
          },
          [&] {
            for (Piece piece : pieces)
              e.storeVector(e.splat(0, piece.width), packed,
                            {r, e.idx(piece.offset)});
          });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populatePackPatterns(RewritePatternSet &patterns) {
  patterns.add<PackQueries, PackColumns, PackAtoms, PackValues>(
      patterns.getContext());
}
