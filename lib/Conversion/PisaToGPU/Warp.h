//===- Warp.h - Short names for the code of a GPU task -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_PISATOGPU_WARP_H
#define PISA_LIB_CONVERSION_PISATOGPU_WARP_H

#include "../Emitter/Emitter.h"

#include "pisa/Dialect/Pisa/Transforms/TaskMemory.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::pisa {

/// Rows of a fragment: those of one mma.sync.
inline constexpr int64_t kRows = 16;
inline constexpr int64_t kWarpSize = 32;
/// Elements of one 16-byte copy of 16-bit elements.
inline constexpr int64_t kChunk = 8;

/// What all tile ops of a function share.
struct TaskContext {
  int64_t numWarps;
  /// Private buffers of accumulators, and the fragments that they become:
  /// memref<R x vector<16 x cols>>, row tile `warp + r numWarps` in place r.
  llvm::DenseMap<Value, Value> fragments;
};

/// Builds the code of one tile op: what every thread of the task runs. Vectors
/// of 16 rows are fragments that a warp holds together.
class WarpEmitter : public Emitter {
public:
  WarpEmitter(PatternRewriter &rewriter, Operation *op, const TaskContext &task)
      : Emitter(rewriter, op), task(task) {}

  // Who and where.
  Value thread();
  Value lane();
  Value warp();
  int64_t numThreads() const { return task.numWarps * kWarpSize; }
  void barrier();
  void syncWarp();

  /// Iterations [0, count) shared among the threads of the task.
  void forEachThread(Value count, function_ref<void(Value)> body);
  /// Iterations [0, count) shared among the lanes of a warp.
  void forEachLane(Value count, function_ref<void(Value)> body);
  SmallVector<Value>
  forEachLane(Value count, ValueRange inits,
              function_ref<SmallVector<Value>(Value, ValueRange)> body);
  /// Items [0, count) one warp each.
  void forEachWarp(Value count, function_ref<void(Value)> body);
  /// Row tiles of `rows` rows: `body(place, tile)`, tile = warp + place
  /// numWarps.
  void forEachRowTile(int64_t rows, function_ref<void(Value, Value)> body);

  // Votes of a warp.
  Value ballot(Value condition);
  Value countOnes(Value bits);
  Value lanesBelow();
  Value minOfWarp(Value i32);
  Value orOfWarp(Value i32);
  /// Inclusive sum over the lanes.
  Value scan(Value i32);
  /// The value of another lane.
  Value fromLane(Value i32, Value lane);
  Value lastLane(Value i32) { return fromLane(i32, idx(kWarpSize - 1)); }

  // Buffers.
  /// The storage behind a buffer (`getStorage`) with all but the last dimension
  /// collapsed.
  Value rowsOf(Value buffer);
  /// The op's scratch as a buffer of workgroup memory; `skip` bytes into it.
  Value scratchView(ArrayRef<int64_t> shape, Type type, int64_t skip = 0);
  int64_t staticDim(Value buffer, int64_t i) {
    return cast<MemRefType>(buffer.getType()).getDimSize(i);
  }
  bool sameElementType(Value x, Value y) {
    return cast<MemRefType>(x.getType()).getElementType() ==
           cast<MemRefType>(y.getType()).getElementType();
  }
  /// An element as float32, whatever the buffer's element type.
  Value loadAsF32(Value source, ValueRange indices);
  /// Whether rows of `source` start at multiples of 16 bytes.
  Value isAligned(Value source);
  /// Copies 8 elements to workgroup memory, or zeros where `present` is false.
  /// Complete only at a barrier that waits for copies.
  void copyChunk(Value aligned, Value present, Value source,
                 ValueRange sourceIndices, Value target,
                 ValueRange targetIndices);

  /// The same where the source is aligned and its indices are safe to name.
  void copyAlignedChunk(Value present, Value source, ValueRange sourceIndices,
                        Value target, ValueRange targetIndices);
  /// Copies 8 elements that are there and aligned.
  void copyWholeChunk(Value source, ValueRange sourceIndices, Value target,
                      ValueRange targetIndices);
  /// Copies `rows` whole rows of `headDim` elements, all of them there and
  /// aligned, from row `firstRow` on: row r to row `place(r)` of the target.
  /// Every thread copies one 16-byte column of every few rows, so that
  /// addresses differ by constants. False if the threads do not divide so.
  bool copyWholeRows(Value source, Value firstRow, int64_t rows,
                     int64_t headDim, Value target,
                     function_ref<Value(Value)> place);

  /// Copies rows [firstRow, firstRow + rows) of one head, `depth` elements
  /// each: zeros past the source's head dimension, and from row `end` on.
  void copyRows(Value source, Value firstRow, Value end, int64_t rows,
                int64_t depth, Value target);

  // Fragments.
  VectorType fragmentType(int64_t columns, Type type = Type());
  Value constantFragment(float value, int64_t columns);
  /// A scalar in every element.
  Value spread(Value scalar, int64_t columns);
  /// A column or row vector (16 x 1 or 1 x N) to all of 16 x N.
  Value spreadTo(Value vector, int64_t columns);
  /// 0 .. 15 as 16 x 1, first .. first + n - 1 as 1 x n, of i32.
  Value rowNumbers();
  Value columnNumbers(int64_t n, int64_t first);
  Value loadFragment(Value memref, ValueRange indices, int64_t rows,
                     int64_t columns);
  /// acc + a . b, b stored as [n, k] (`transposed`) or [k, n].
  Value multiply(Value a, Value b, Value acc, bool transposed);
  /// Reductions over the columns, 16 x 1.
  Value rowMax(Value fragment);
  Value rowSum(Value fragment);

  const TaskContext &task;

private:
  /// Iterations [0, count), of which `who` takes every `step`-th. All take the
  /// same number of steps, the last of them perhaps idle: ptxas lets lanes that
  /// leave a loop at different times stay apart, bar.warp.sync or not, and
  /// ldmatrix and matrix products of a part of a warp compute rubbish.
  void share(Value who, Value count, int64_t step,
             function_ref<void(Value)> body);
  /// Whether `count` is known to be a multiple of `step`.
  static bool divides(Value count, int64_t step);
};

/// Rows of a task in the flattened [nq M] order.
struct RowLayout {
  int64_t rowsPerBlock; ///< M
  int64_t queryBlock;   ///< Q
  int64_t heads;        ///< G
  int64_t numRows;      ///< of the storage

  static RowLayout get(WarpEmitter &e, Value queries, int64_t queryBlock,
                       int64_t heads);
  /// Query blocks that a row tile touches: one, or 16 / M.
  int64_t blocksPerTile() const {
    return rowsPerBlock >= kRows ? 1 : kRows / rowsPerBlock;
  }
  /// First query block of a row tile.
  Value firstBlock(WarpEmitter &e, Value tile) const;
  /// For each row of a tile (16 x 1, i32): its query block relative to
  /// `firstBlock`, and its row in that block.
  std::pair<Value, Value> blockAndRow(WarpEmitter &e, Value tile) const;
};

/// Bit j is set if the list of query block `first + j` names `block`.
Value emitListedMask(WarpEmitter &e, Value lists, Value first, int64_t count,
                     int64_t divisor, Value block);

void populateGPUCheckPatterns(RewritePatternSet &patterns,
                              const TaskContext &task);
void populateGPUPackPatterns(RewritePatternSet &patterns,
                             const TaskContext &task);
void populateGPUListPatterns(RewritePatternSet &patterns,
                             const TaskContext &task);
void populateGPUEntryPatterns(RewritePatternSet &patterns,
                              const TaskContext &task);
void populateGPUScoreEntriesPatterns(RewritePatternSet &patterns,
                                     const TaskContext &task);
void populateGPUAttendEntriesPatterns(RewritePatternSet &patterns,
                                      const TaskContext &task);
void populateGPUPoolPatterns(RewritePatternSet &patterns,
                             const TaskContext &task);
void populateGPUScorePatterns(RewritePatternSet &patterns,
                              const TaskContext &task);
void populateGPUAttendPatterns(RewritePatternSet &patterns,
                               const TaskContext &task);

/// A pattern that knows the task.
template <typename OpTy> struct TaskPattern : OpRewritePattern<OpTy> {
  TaskPattern(MLIRContext *context, const TaskContext &task)
      : OpRewritePattern<OpTy>(context), task(task) {}
  const TaskContext &task;
};

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_PISATOGPU_WARP_H
