//===- Emitter.h - Short names for the IR that tile ops become --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_EMITTER_EMITTER_H
#define PISA_LIB_CONVERSION_EMITTER_EMITTER_H

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>

namespace mlir::pisa {

/// A run of vector lanes in a dimension.
struct Piece {
  int64_t offset;
  int64_t width;
};

/// Splits [0, size) into pieces of `width` lanes and a rest.
SmallVector<Piece> getPieces(int64_t size, int64_t width);

/// Builds the scalar and vector code of one tile op.
class Emitter : public ImplicitLocOpBuilder {
public:
  Emitter(PatternRewriter &rewriter, Operation *op)
      : ImplicitLocOpBuilder(op->getLoc(), rewriter), op(op) {}

  // Constants.
  Value idx(int64_t value);
  Value i32(int32_t value);
  Value f32(float value);
  Value splat(float value, int64_t width);
  Value splatI32(int32_t value, int64_t width);
  float negInf() const;

  // Index (or i32) arithmetic.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  /// Floor division and remainder of non-negative indices by a constant.
  Value div(Value x, int64_t y);
  Value rem(Value x, int64_t y);
  Value cmp(arith::CmpIPredicate predicate, Value x, Value y);
  Value both(Value x, Value y);
  Value toIndex(Value i32);
  Value toI32(Value index);

  // Control flow. Bodies leave their terminator to us.
  void loop(Value begin, Value end, int64_t step,
            function_ref<void(Value)> body);
  SmallVector<Value>
  loop(Value begin, Value end, int64_t step, ValueRange inits,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void when(Value condition, function_ref<void()> body);
  void when(Value condition, function_ref<void()> body,
            function_ref<void()> otherwise);
  SmallVector<Value> choose(Value condition, TypeRange types,
                            function_ref<SmallVector<Value>()> body,
                            function_ref<SmallVector<Value>()> otherwise);

  // Memory.
  Value dim(Value memref, int64_t i);
  Value load(Value memref, ValueRange indices);
  void store(Value value, Value memref, ValueRange indices);
  /// `width` elements as float32, whatever the memref's element type.
  Value loadF32(Value memref, ValueRange indices, int64_t width);
  /// Stores float32 lanes, rounded once to the memref's element type.
  void storeF32(Value vector, Value memref, ValueRange indices);
  Value loadVector(Value memref, ValueRange indices, int64_t width);
  void storeVector(Value vector, Value memref, ValueRange indices);
  /// A buffer that lives as long as the task.
  Value scratch(ArrayRef<int64_t> shape, Type elementType);

  // Float32 arithmetic on scalars and vectors.
  Value broadcast(Value scalar, int64_t width);
  Value fma(Value x, Value y, Value z);
  Value exp2(Value x);
  Value log2(Value x);
  /// Largest lane; NaN if any lane is NaN.
  Value reduceMax(Value vector);
  /// Sum of the lanes, in the order that is fastest.
  Value reduceAdd(Value vector);
  Value isFinite(Value x);
  /// 0, 1, 2, .. as i32.
  Value iota(int64_t width);

  /// True if any of the entries of row `row` of a [1, 1, nq, n] list, divided
  /// by `divisor`, is `block`.
  Value anyEntry(Value lists, Value row, int64_t divisor, Value block);

  Operation *op;
};

/// Whether an operand of a phase belongs to one sequence and one kv head.
bool isOneTask(Value value);

/// Where the queries of a task stand; see `route_upper`.
struct Positions {
  ParamsAttr params;
  Value kLen;   ///< index
  Value start;  ///< index: position of the task's query 0; null: no positions
  Value length; ///< index: queries from the task's query 0 to the end; or null

  static Positions get(Emitter &e, ParamsAttr params, Value kLen, Value qStart,
                       Value queryOffset, Value queryLength);
  /// First and last position of query block `j` of the task.
  std::pair<Value, Value> ofBlock(Emitter &e, Value j) const;
};

/// Whether a node of `span` leaves has a forced one among them, for query block
/// `j` of a task.
Value isForced(Emitter &e, const Positions &positions, Value node, Value span,
               Value j);

/// Keys that order candidates as docs/Spec.md section 2 says: forced ones
/// first, then by score, padding last.
inline constexpr int32_t kForcedKey = std::numeric_limits<int32_t>::max();
inline constexpr int32_t kPaddingKey = std::numeric_limits<int32_t>::min();
/// The key of a score: an i32 that orders as the float does; -0 as +0; NaN
/// below -inf.
Value orderedKey(Emitter &e, Value score);

/// S[r, c] = bias[c] + queries[j, row0 + r] . columns[:, c] for `rowTile` rows
/// and all columns, into `out` [rowTile, Cols].
void emitScores(Emitter &e, Value queries, Value j, Value row0, int64_t rowTile,
                int64_t columnTile, Value columns, Value bias, Value out);

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_EMITTER_EMITTER_H
