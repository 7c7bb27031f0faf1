//===- PyramidLayout.h - Where a pyramid's nodes live -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_DIALECT_PISA_IR_PYRAMIDLAYOUT_H
#define PISA_DIALECT_PISA_IR_PYRAMIDLAYOUT_H

#include "mlir/IR/OpDefinition.h"

namespace mlir::pisa {

/// The arithmetic of a packed pyramid: ceil(keys / C) leaves at level 1,
/// ceil(n / g) nodes at each level above, down to one node; levels one after
/// the other, level 1 first. Offsets follow from the capacity, so that
/// appending never moves a node. The single home of this arithmetic, for
/// constants here and as IR below (docs/Spec.md section 1).
struct PyramidLayout {
  int64_t blockSize;
  int64_t fanout;

  /// Leaves that hold `keys` keys; 0 for none.
  int64_t getNumLeaves(int64_t keys) const;
  /// Levels of the tree over `keys` keys, leaves included; 0 for none.
  int64_t getNumLevels(int64_t keys) const;
  /// Nodes at `level` (1 = leaves).
  int64_t getNumNodes(int64_t keys, int64_t level) const;
  /// First row of `level` in a pyramid of this capacity.
  int64_t getLevelOffset(int64_t capacity, int64_t level) const;
  /// Rows of a pyramid of this capacity.
  int64_t getNumRows(int64_t capacity) const;

  // The same as IR on index values. A power g^(level - 1) never exceeds
  // g * leaves for a level of the tree, so index arithmetic cannot overflow.

  /// ceil(keys / C).
  Value buildNumLeaves(OpBuilder &b, Location loc, Value keys) const;
  /// Levels of a tree over `leaves` leaves; 0 for none.
  Value buildNumLevels(OpBuilder &b, Location loc, Value leaves) const;
  /// g^(level - 1), the leaves under one node of `level`.
  Value buildSpan(OpBuilder &b, Location loc, Value level) const;
  /// First row of `level`, from the leaves of the capacity.
  Value buildLevelOffset(OpBuilder &b, Location loc, Value capacityLeaves,
                         Value level) const;
};

} // namespace mlir::pisa

#endif // PISA_DIALECT_PISA_IR_PYRAMIDLAYOUT_H
