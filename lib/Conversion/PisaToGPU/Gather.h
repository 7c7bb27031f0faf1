//===- Gather.h - Rows of the queries that listed a block -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_PISATOGPU_GATHER_H
#define PISA_LIB_CONVERSION_PISATOGPU_GATHER_H

#include "Warp.h"

namespace mlir::pisa {

/// Calls `body(block, first, count)` for the one item of a task, if it has
/// work: its block of keys, its first entry and the number of its entries.
void forItem(WarpEmitter &e, Value items, Value rows, int64_t gather,
             function_ref<void(Value, Value, Value)> body);

/// The queries of one item of work: the entries of a block, 16 rows at a time,
/// each warp by itself and one step ahead.
class EntryGather {
public:
  /// `entries` are numbers list n + place, n = `listWidth`.
  EntryGather(WarpEmitter &e, Value q, Value entries, int64_t queryBlock,
              int64_t listWidth);

  /// Rows of storage that all warps take.
  int64_t getStorageRows() const { return 2 * e.task.numWarps * kRows; }
  /// The entries [first, first + count); storage for two tiles a warp:
  /// memref<storage rows x pitch> for the rows, memref<storage rows x i64> for
  /// where they come from.
  void begin(Value first, Value count, Value storage, Value sources);
  /// A row of a tile.
  struct Row {
    Value entry; ///< its number
    Value inner; ///< row in the query block
    Value query; ///< of the tensor
    Value real;  ///< whether it is there at all
  };
  /// Calls `body(row, mine, step, carried)` for each tile of 16 rows, which lie
  /// in the storage from `row` on; lane r's `mine` is row r % 16.
  SmallVector<Value>
  forEachTile(ValueRange inits,
              function_ref<SmallVector<Value>(Value row, const Row &mine,
                                              Value step, ValueRange)>
                  body);
  /// The first entry of a step's tile, and which part of that entry's rows.
  Value baseOf(Value step);
  Value partOf(Value step) { return e.rem(step, tilesPerEntry); }
  Value end() const { return rangeEnd; }

  int64_t queryBlock, heads, listWidth;
  int64_t real;           ///< rows of a query block
  int64_t rowsPerEntry;   ///< the same, a power of two up to 16 or whole tiles
  int64_t entriesPerTile; ///< of 16 rows
  int64_t tilesPerEntry;
  int64_t rowsInTile; ///< rows of one entry in one tile
  int64_t headDim, depth;

private:
  /// Each lane's entry of a step's tile.
  Value loadEntry(Value step);
  Row locate(Value step, Value entry);
  /// Starts to copy the rows of a step's tile.
  void gather(Value step, Value entry, Value targetRow);

  WarpEmitter &e;
  Value q, entries, storage, sources, numQueries, aligned, rangeFirst, rangeEnd,
      steps;
  Value flat; ///< q as one row of elements
  Value headStride, queryStride;
};

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_PISATOGPU_GATHER_H
