//===- Softmax.h - Attention of 16 rows, in registers -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_PISATOGPU_SOFTMAX_H
#define PISA_LIB_CONVERSION_PISATOGPU_SOFTMAX_H

#include "Warp.h"

namespace mlir::pisa {

/// Keys whose scores a warp holds at a time: 32 registers a lane. Half of them
/// where the accumulators take more than 64.
inline int64_t getScoreTile(int64_t valueDim) {
  return valueDim > 128 ? 32 : 64;
}

/// The state of one row tile; no values before the first step. Exponents are in
/// base 2.
struct Softmax {
  Value acc; ///< 16 x Dv
  Value max; ///< 16 x 1
  Value sum; ///< 16 x 1

  /// Moves a row's maximum and sum over the scores, scales what it has
  /// accumulated, and returns the weights of the scores.
  Value step(WarpEmitter &e, Value scores, int64_t columns, int64_t valueDim);
  /// One block of keys and values from workgroup memory: `mask` changes the
  /// scores of a piece of its columns.
  void attend(WarpEmitter &e, Value rows, Value keys, Value values, Value scale,
              int64_t blockSize,
              function_ref<Value(Value scores, Piece piece)> mask);
  /// acc / sum as `type`, 0 where nothing was seen.
  Value normalized(WarpEmitter &e, int64_t valueDim, Type type) const;
  /// log2 of all weights' sum; an infinite maximum is the answer (docs/Spec.md
  /// section 2), and its sum is NaN or 0.
  Value lse2(WarpEmitter &e) const;
};

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_PISATOGPU_SOFTMAX_H
