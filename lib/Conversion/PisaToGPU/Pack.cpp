//===- Pack.cpp - Packing tile ops into copies by all threads -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// Writes the parts of a float32 value, from the highest, `distance` rows
/// apart: their sum holds all bits that the target's type can.
void storeParts(WarpEmitter &e, Value x, Value target, Value row, Value depth,
                int64_t parts, int64_t distance) {
  Type type = cast<MemRefType>(target.getType()).getElementType();
  for (int64_t part = 0; part < parts; ++part) {
    Value rounded = arith::TruncFOp::create(e, type, x);
    e.store(rounded, target, {row, e.add(depth, e.idx(part * distance))});
    if (part + 1 == parts)
      return;
    Value back = arith::ExtFOp::create(e, e.getF32Type(), rounded);
    // What is infinite or NaN has no rest.
    Value finite = e.isFinite(back);
    x = arith::SelectOp::create(e, finite, arith::SubFOp::create(e, x, back),
                                e.f32(0));
  }
}

/// Columns of a task as they are stored: one row of storage a column.
struct ColumnStorage {
  Value rows;      ///< memref<Cols x pitch>
  int64_t depth;   ///< D, rounded up
  int64_t parts;   ///< times stored
  int64_t headDim; ///< D of the source

  static ColumnStorage get(WarpEmitter &e, Value columns, int64_t headDim) {
    int64_t depth = llvm::alignTo(static_cast<uint64_t>(headDim), kRows);
    return {getStorage(columns), depth, e.staticDim(columns, 0) / depth,
            headDim};
  }
};

/// Writes every column of storage: column c takes the row of `source` that
/// `locate` names, or zeros. `locate` returns (present, indices without the
/// last).
void packColumns(
    WarpEmitter &e, const ColumnStorage &storage, int64_t numColumns,
    Value source,
    function_ref<std::pair<Value, SmallVector<Value>>(Value)> locate) {
  Type sourceType = cast<MemRefType>(source.getType()).getElementType();
  Type type = cast<MemRefType>(storage.rows.getType()).getElementType();
  int64_t chunks = storage.depth / kChunk;
  bool converts = sourceType != type;
  Value aligned = converts ? Value() : e.isAligned(source);
  e.forEachThread(e.idx(numColumns * chunks), [&](Value i) {
    Value column = e.div(i, chunks);
    Value depth = e.mul(e.rem(i, chunks), e.idx(kChunk));
    auto [present, indices] = locate(column);
    if (storage.depth != storage.headDim)
      present = e.both(present, e.cmp(arith::CmpIPredicate::slt, depth,
                                      e.idx(storage.headDim)));
    indices.push_back(depth);
    if (!converts)
      return e.copyChunk(aligned, present, source, indices, storage.rows,
                         {column, depth});
    e.loop(e.idx(0), e.idx(kChunk), 1, [&](Value k) {
      Value x = e.choose(
          present, e.getF32Type(),
          [&] {
            SmallVector<Value> at = indices;
            at.back() = e.add(at.back(), k);
            return SmallVector<Value>{e.loadAsF32(source, at)};
          },
          [&] { return SmallVector<Value>{e.f32(0)}; })[0];
      storeParts(e, x, storage.rows, column, e.add(depth, k), storage.parts,
                 storage.depth);
    });
  });
}

struct PackQueries : TaskPattern<PackQueriesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PackQueriesOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value q = op.getQ();
    int64_t heads = e.staticDim(q, 1), headDim = e.staticDim(q, 3);
    RowLayout layout =
        RowLayout::get(e, op.getPacked(), op.getQueryBlock(), heads);
    Value rows = e.rowsOf(op.getPacked());
    int64_t chunks = e.staticDim(op.getPacked(), 2) / kChunk;
    Value numQueries = e.dim(q, 2);
    Value aligned = e.isAligned(q);
    int64_t rowsPerBlock = layout.rowsPerBlock;
    e.forEachThread(e.idx(layout.numRows * chunks), [&](Value i) {
      Value row = e.div(i, chunks);
      Value depth = e.mul(e.rem(i, chunks), e.idx(kChunk));
      Value j = e.div(row, rowsPerBlock), r = e.rem(row, rowsPerBlock);
      Value query = e.add(e.mul(j, e.idx(op.getQueryBlock())), e.div(r, heads));
      Value present =
          e.both(e.cmp(arith::CmpIPredicate::slt, r,
                       e.idx(op.getQueryBlock() * heads)),
                 e.cmp(arith::CmpIPredicate::slt, query, numQueries));
      present = e.both(present,
                       e.cmp(arith::CmpIPredicate::slt, depth, e.idx(headDim)));
      e.copyChunk(aligned, present, q,
                  {e.idx(0), e.rem(r, heads), query, depth}, rows,
                  {row, depth});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PackColumns : TaskPattern<PackColumnsOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PackColumnsOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value source = op.getSource();
    int64_t numColumns = e.staticDim(op.getColumns(), 1);
    int64_t group = op.getGroup(), nodes = op.getNodes();
    ColumnStorage storage =
        ColumnStorage::get(e, op.getColumns(), e.staticDim(source, 3));
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    Value keysPerRow = op.getKeysPerRow();
    Value firstRow = e.mul(op.getBlock(), e.idx(group * nodes));
    // Row of the source behind a column, and the keys that it stands for.
    auto rowAndCount = [&](Value column) -> std::pair<Value, Value> {
      bool padded = group * nodes != numColumns;
      Value real;
      if (padded) {
        real = e.cmp(arith::CmpIPredicate::slt, column, e.idx(group * nodes));
        column = arith::SelectOp::create(e, real, column, e.idx(0));
      }
      Value node = e.rem(column, nodes), child = e.div(column, nodes);
      Value row;
      if (Value listed = op.getListed()) {
        Value place = e.add(e.mul(op.getBlock(), e.idx(nodes)), node);
        Value inside =
            e.cmp(arith::CmpIPredicate::slt, place, e.dim(listed, 0));
        Value safe = arith::SelectOp::create(e, inside, place, e.idx(0));
        Value name = e.toIndex(e.load(listed, safe));
        Value named =
            e.both(inside, e.cmp(arith::CmpIPredicate::sge, name, e.idx(0)));
        real = padded ? e.both(real, named) : named;
        row = e.add(e.mul(name, e.idx(group)), child);
      } else {
        row = e.add(firstRow, e.add(e.mul(node, e.idx(group)), child));
      }
      Value count = e.sub(kLen, e.mul(row, keysPerRow));
      count = e.max(e.min(count, keysPerRow), e.idx(0));
      if (real)
        count = arith::SelectOp::create(e, real, count, e.idx(0));
      return {row, count};
    };
    auto anyRows = [&] {
      packColumns(e, storage, numColumns, source, [&](Value column) {
        auto [row, count] = rowAndCount(column);
        Value present = e.cmp(arith::CmpIPredicate::sgt, count, e.idx(0));
        SmallVector<Value> indices = {e.idx(0), e.idx(0),
                                      e.add(op.getRowBase(), row)};
        return std::pair(present, indices);
      });
    };
    // Row r of the block, child r % group of node r / group, is a column.
    auto columnOf = [&](Value r) -> Value {
      if (nodes == 1)
        return r;
      return e.add(e.mul(e.rem(r, group), e.idx(nodes)), e.div(r, group));
    };
    int64_t chunks = storage.depth / kChunk;
    bool plain = storage.parts == 1 && storage.depth == storage.headDim &&
                 group * nodes == numColumns && e.numThreads() % chunks == 0 &&
                 e.sameElementType(source, storage.rows);
    if (!plain) {
      anyRows();
    } else if (op.getListed()) {
      e.when(
          e.isAligned(source), [&] { gatherRows(e, op, storage, kLen); },
          anyRows);
    } else {
      Value lastRow = e.add(firstRow, e.idx(group * nodes));
      Value complete =
          e.cmp(arith::CmpIPredicate::sle, e.mul(lastRow, keysPerRow), kLen);
      e.when(
          e.both(complete, e.isAligned(source)),
          [&] {
            e.copyWholeRows(source, e.add(op.getRowBase(), firstRow),
                            group * nodes, storage.depth, storage.rows,
                            columnOf);
          },
          anyRows);
    }
    e.forEachThread(e.idx(numColumns), [&](Value column) {
      Value count = rowAndCount(column).second;
      Value some = e.cmp(arith::CmpIPredicate::sgt, count, e.idx(0));
      Value keys = arith::SIToFPOp::create(e, e.getF32Type(), e.toI32(count));
      Value bias =
          arith::SelectOp::create(e, some, e.log2(keys), e.f32(e.negInf()));
      e.store(bias, op.getBias(), column);
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// The children of listed nodes. Every thread copies one 16-byte column of
  /// every few nodes.
  static void gatherRows(WarpEmitter &e, PackColumnsOp op,
                         const ColumnStorage &storage, Value kLen) {
    int64_t group = op.getGroup(), nodes = op.getNodes();
    int64_t chunks = storage.depth / kChunk;
    int64_t atOnce = e.numThreads() / chunks;
    Value zero = e.idx(0), listed = op.getListed();
    Value depth = e.mul(e.rem(e.thread(), chunks), e.idx(kChunk));
    Value node0 = e.div(e.thread(), chunks);
    Value place0 = e.mul(op.getBlock(), e.idx(nodes));
    Value capacity = e.dim(listed, 0);
    for (int64_t i = 0; i < nodes; i += atOnce) {
      Value node = e.add(node0, e.idx(i));
      Value place = e.add(place0, node);
      Value inside = e.cmp(arith::CmpIPredicate::slt, place, capacity);
      if (i + atOnce > nodes)
        inside = e.both(inside,
                        e.cmp(arith::CmpIPredicate::slt, node, e.idx(nodes)));
      e.when(inside, [&] {
        Value name = e.toIndex(e.load(listed, place));
        Value exists = e.cmp(arith::CmpIPredicate::sge, name, zero);
        for (int64_t child = 0; child < group; ++child) {
          Value row = e.add(e.mul(name, e.idx(group)), e.idx(child));
          Value present =
              e.both(exists, e.cmp(arith::CmpIPredicate::slt,
                                   e.mul(row, op.getKeysPerRow()), kLen));
          Value safe = arith::SelectOp::create(
              e, present, e.add(op.getRowBase(), row), zero);
          e.copyAlignedChunk(present, op.getSource(), {zero, zero, safe, depth},
                             storage.rows,
                             {e.add(node, e.idx(child * nodes)), depth});
        }
      });
    }
  }
};

struct PackAtoms : TaskPattern<PackAtomsOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PackAtomsOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    int64_t numColumns = e.staticDim(op.getColumns(), 1);
    int64_t numAtoms = e.staticDim(op.getAtoms(), 3);
    int64_t headDim = e.staticDim(op.getK(), 3);
    int64_t nodes = op.getNodes(), blockSize = op.getBlockSize();
    int64_t subBlock = blockSize / numAtoms;
    ColumnStorage storage = ColumnStorage::get(e, op.getColumns(), headDim);
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    Value numLeaves = e.dim(op.getAtoms(), 2);
    Value zero = e.idx(0), one = e.idx(1);

    // One warp a column: a column is an atom of one leaf, or its outlier.
    e.forEachWarp(e.idx(numColumns), [&](Value column) {
      Value atom = e.div(column, nodes), n = e.rem(column, nodes);
      Value leaf = e.add(e.mul(op.getBlock(), e.idx(nodes)), n);
      Value real = e.both(e.cmp(arith::CmpIPredicate::slt, column,
                                e.idx((numAtoms + 1) * nodes)),
                          e.cmp(arith::CmpIPredicate::slt, leaf, numLeaves));
      Value safeLeaf = e.max(e.min(leaf, e.sub(numLeaves, one)), zero);
      Value outlier =
          e.toIndex(e.load(op.getOutlier(), {zero, zero, safeLeaf}));
      Value begin =
          e.add(e.mul(leaf, e.idx(blockSize)), e.mul(atom, e.idx(subBlock)));
      Value count = e.max(e.min(e.sub(kLen, begin), e.idx(subBlock)), zero);
      Value holds = e.both(e.cmp(arith::CmpIPredicate::sge, outlier, begin),
                           e.cmp(arith::CmpIPredicate::slt, outlier,
                                 e.add(begin, e.idx(subBlock))));
      count = e.sub(count, arith::SelectOp::create(e, holds, one, zero));
      // An outlier that `pool_leaves` did not write may be anything.
      Value isOutlier = e.cmp(arith::CmpIPredicate::eq, atom, e.idx(numAtoms));
      Value hasOutlier =
          e.both(e.cmp(arith::CmpIPredicate::sge, outlier, zero),
                 e.cmp(arith::CmpIPredicate::slt, outlier, kLen));
      count = arith::SelectOp::create(
          e, isOutlier, arith::SelectOp::create(e, hasOutlier, one, zero),
          count);
      count = arith::SelectOp::create(e, real, count, zero);
      Value some = e.cmp(arith::CmpIPredicate::sgt, count, zero);
      Value safeAtom = e.min(atom, e.idx(numAtoms - 1));
      Value fromKeys = e.both(some, isOutlier);
      Value safeKey = arith::SelectOp::create(e, fromKeys, outlier, zero);
      e.forEachLane(e.idx(storage.depth), [&](Value depth) {
        Value present = some;
        if (storage.depth != headDim)
          present = e.both(
              some, e.cmp(arith::CmpIPredicate::slt, depth, e.idx(headDim)));
        Value x = e.choose(
            present, e.getF32Type(),
            [&] {
              return e.choose(
                  isOutlier, e.getF32Type(),
                  [&] {
                    return SmallVector<Value>{
                        e.loadAsF32(op.getK(), {zero, zero, safeKey, depth})};
                  },
                  [&] {
                    return SmallVector<Value>{
                        e.loadAsF32(op.getAtoms(),
                                    {zero, zero, safeLeaf, safeAtom, depth})};
                  });
            },
            [&] { return SmallVector<Value>{e.f32(0)}; })[0];
        storeParts(e, x, storage.rows, column, depth, storage.parts,
                   storage.depth);
      });
      Value first = e.cmp(arith::CmpIPredicate::eq, e.lane(), zero);
      e.when(first, [&] {
        Value keys = arith::SIToFPOp::create(e, e.getF32Type(), e.toI32(count));
        Value bias =
            arith::SelectOp::create(e, some, e.log2(keys), e.f32(e.negInf()));
        e.store(bias, op.getBias(), column);
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PackValues : TaskPattern<PackValuesOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(PackValuesOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value kLen = e.toIndex(e.load(op.getKLen(), e.idx(0)));
    int64_t blockSize = e.staticDim(op.getPacked(), 0);
    e.copyRows(op.getV(), e.mul(op.getBlock(), e.idx(blockSize)), kLen,
               blockSize, e.staticDim(op.getPacked(), 1),
               getStorage(op.getPacked()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateGPUPackPatterns(RewritePatternSet &patterns,
                                   const TaskContext &task) {
  patterns.add<PackQueries, PackColumns, PackAtoms, PackValues>(
      patterns.getContext(), task);
}
