//===- Gather.cpp - Rows of the queries that listed a block -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gather.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

void pisa::forItem(WarpEmitter &e, Value items, Value rows, int64_t gather,
                   function_ref<void(Value, Value, Value)> body) {
  Value zero = e.idx(0), one = e.idx(1);
  Value block = e.toIndex(e.load(items, {zero, zero, zero, zero}));
  e.when(e.cmp(arith::CmpIPredicate::sge, block, zero), [&] {
    Value first = e.toIndex(e.load(items, {zero, zero, zero, one}));
    Value end = e.toIndex(e.load(rows, {zero, zero, e.add(block, one)}));
    body(block, first, e.min(e.sub(end, first), e.idx(gather)));
  });
}

EntryGather::EntryGather(WarpEmitter &e, Value q, Value entries,
                         int64_t queryBlock, int64_t listWidth)
    : queryBlock(queryBlock), heads(e.staticDim(q, 1)), listWidth(listWidth),
      real(queryBlock * heads), headDim(e.staticDim(q, 3)), e(e), q(q),
      entries(entries) {
  rowsPerEntry = real <= kRows
                     ? static_cast<int64_t>(llvm::PowerOf2Ceil(real))
                     : llvm::alignTo(static_cast<uint64_t>(real), kRows);
  entriesPerTile = std::max<int64_t>(1, kRows / rowsPerEntry);
  tilesPerEntry = std::max<int64_t>(1, rowsPerEntry / kRows);
  rowsInTile = std::min(rowsPerEntry, kRows);
  depth = llvm::alignTo(static_cast<uint64_t>(headDim), kRows);
}

void EntryGather::begin(Value first, Value count, Value storage,
                        Value sources) {
  this->storage = storage;
  this->sources = sources;
  rangeFirst = first;
  rangeEnd = e.add(first, count);
  numQueries = e.dim(q, 2);
  aligned = e.isAligned(q);
  // A row is found by one number.
  auto metadata = memref::ExtractStridedMetadataOp::create(e, q);
  headStride = metadata.getStrides()[1];
  queryStride = metadata.getStrides()[2];
  auto layout = StridedLayoutAttr::get(e.getContext(), ShapedType::kDynamic,
                                       ArrayRef<int64_t>{1});
  Type element = cast<MemRefType>(q.getType()).getElementType();
  flat = memref::ReinterpretCastOp::create(
      e, MemRefType::get({ShapedType::kDynamic}, element, layout), q,
      metadata.getOffset(),
      ArrayRef<OpFoldResult>{e.mul(numQueries, queryStride)},
      ArrayRef<OpFoldResult>{e.getIndexAttr(1)});
  // Steps of this warp: a tile of entries each numWarps, all its parts.
  Value numTiles = arith::CeilDivSIOp::create(e, count, e.idx(entriesPerTile));
  Value tiles = arith::CeilDivSIOp::create(e, e.sub(numTiles, e.warp()),
                                           e.idx(e.task.numWarps));
  steps = e.mul(e.max(tiles, e.idx(0)), e.idx(tilesPerEntry));
}

Value EntryGather::baseOf(Value step) {
  Value tile = e.add(e.warp(),
                     e.mul(e.div(step, tilesPerEntry), e.idx(e.task.numWarps)));
  return e.add(rangeFirst, e.mul(tile, e.idx(entriesPerTile)));
}

Value EntryGather::loadEntry(Value step) {
  Value r = e.rem(e.lane(), kRows);
  Value place = e.add(baseOf(step), e.div(r, rowsInTile));
  // Past the last entry any of them will do.
  place = e.min(place, e.sub(rangeEnd, e.idx(1)));
  return e.load(entries, {e.idx(0), e.idx(0), place});
}

EntryGather::Row EntryGather::locate(Value step, Value entry) {
  Row row;
  Value r = e.rem(e.lane(), kRows);
  Value place = e.add(baseOf(step), e.div(r, rowsInTile));
  row.entry = e.toIndex(entry);
  row.inner = e.add(e.rem(r, rowsInTile), e.mul(partOf(step), e.idx(kRows)));
  row.query = e.add(e.mul(e.div(row.entry, listWidth), e.idx(queryBlock)),
                    e.div(row.inner, heads));
  row.real = e.both(e.cmp(arith::CmpIPredicate::slt, place, rangeEnd),
                    e.cmp(arith::CmpIPredicate::slt, row.query, numQueries));
  if (rowsPerEntry != real)
    row.real = e.both(row.real,
                      e.cmp(arith::CmpIPredicate::slt, row.inner, e.idx(real)));
  return row;
}

void EntryGather::gather(Value step, Value entry, Value targetRow) {
  Value zero = e.idx(0);
  int64_t chunks = depth / kChunk;
  // Lane r finds where row r begins, in elements from the tensor's first. Rows
  // that are not there take that one: nothing of them is used.
  e.when(e.cmp(arith::CmpIPredicate::slt, e.lane(), e.idx(kRows)), [&] {
    Row row = locate(step, entry);
    Value begin = e.add(e.mul(row.query, queryStride),
                        e.mul(e.rem(row.inner, heads), headStride));
    begin = arith::SelectOp::create(e, row.real, begin, zero);
    e.store(arith::IndexCastOp::create(e, e.getI64Type(), begin), sources,
            e.add(targetRow, e.lane()));
  });
  e.syncWarp();
  auto anyRows = [&] {
    e.forEachLane(e.idx(kRows * chunks), [&](Value i) {
      Value r = e.div(i, chunks);
      Value d = e.mul(e.rem(i, chunks), e.idx(kChunk));
      Value begin = e.toIndex(e.load(sources, e.add(targetRow, r)));
      Value present = e.cmp(arith::CmpIPredicate::slt, d, e.idx(headDim));
      e.copyChunk(aligned, present, flat, e.add(begin, d), storage,
                  {e.add(targetRow, r), d});
    });
  };
  if (depth != headDim || kWarpSize % chunks != 0)
    return anyRows();
  e.when(
      aligned,
      [&] {
        Value row0 = e.div(e.lane(), chunks);
        Value d = e.mul(e.rem(e.lane(), chunks), e.idx(kChunk));
        // All loads before the first copy: it might write what they read, for
        // all that ptxas knows.
        SmallVector<std::pair<Value, Value>> rows;
        for (int64_t r = 0; r < kRows; r += kWarpSize / chunks) {
          Value row = e.add(targetRow, e.add(row0, e.idx(r)));
          rows.push_back({row, e.toIndex(e.load(sources, row))});
        }
        for (auto [row, begin] : rows)
          e.copyWholeChunk(flat, e.add(begin, d), storage, {row, d});
      },
      anyRows);
}

SmallVector<Value> EntryGather::forEachTile(
    ValueRange inits,
    function_ref<SmallVector<Value>(Value, const Row &, Value, ValueRange)>
        body) {
  Value zero = e.idx(0), one = e.idx(1);
  Value warpRow = e.mul(e.warp(), e.idx(kRows));
  auto rowOf = [&](Value stage) {
    return e.add(warpRow, e.mul(stage, e.idx(e.task.numWarps * kRows)));
  };
  auto start = [&](Value step, Value entry, Value stage) {
    e.when(e.cmp(arith::CmpIPredicate::slt, step, steps),
           [&] { gather(step, entry, rowOf(stage)); });
    NVVM::CpAsyncCommitGroupOp::create(e);
  };
  // A step works on its rows while those of the next come, and while the entry
  // of the one after that is loaded: nobody waits for two loads in a row.
  Value first = loadEntry(zero);
  start(zero, first, zero);
  SmallVector<Value> carried = {zero, first, loadEntry(one)};
  llvm::append_range(carried, inits);
  SmallVector<Value> results = e.loop(
      zero, steps, 1, carried,
      [&](Value step, ValueRange carried) -> SmallVector<Value> {
        Value stage = carried[0], other = e.sub(one, stage);
        Value entry = carried[1], next = carried[2];
        start(e.add(step, one), next, other);
        Value later = loadEntry(e.add(step, e.idx(2)));
        NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(1));
        e.syncWarp();
        SmallVector<Value> results = {other, next, later};
        llvm::append_range(results, body(rowOf(stage), locate(step, entry),
                                         step, carried.drop_front(3)));
        // The next rows overwrite these.
        e.syncWarp();
        return results;
      });
  NVVM::CpAsyncWaitGroupOp::create(e, e.getI32IntegerAttr(0));
  results.erase(results.begin(), results.begin() + 3);
  return results;
}
