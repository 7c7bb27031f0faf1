//===- Verifiers.h - Checks that several op verifiers share -----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_DIALECT_PISA_IR_VERIFIERS_H
#define PISA_LIB_DIALECT_PISA_IR_VERIFIERS_H

#include "pisa/Dialect/Pisa/IR/Pisa.h"

namespace mlir::pisa {

/// Expected dimensions of an operand; ShapedType::kDynamic matches anything,
/// and a dynamic dimension of the operand matches everything.
struct OperandShape {
  StringRef name;
  Value value;
  SmallVector<int64_t> dims;
  /// Names of the dimensions as in docs/Spec.md, for the message.
  StringRef symbols;
};

/// Fails if an operand's dimension contradicts its expected shape.
LogicalResult verifyShape(Operation *op, const OperandShape &shape);
LogicalResult verifyShapes(Operation *op, ArrayRef<OperandShape> shapes);

/// Fails unless both have one element type.
LogicalResult verifySameElementType(Operation *op, StringRef name, Value value,
                                    StringRef otherName, Value other);
/// Fails unless `value`'s element type is `type`; `why` names its source.
LogicalResult verifyElementType(Operation *op, StringRef name, Value value,
                                Type type, StringRef why);
/// Fails unless the last dimension of `value` is a legal head dimension.
LogicalResult verifyHeadDim(Operation *op, StringRef name, Value value);
/// Fails unless the head counts are static and `kvHeads` divides `heads`.
LogicalResult verifyHeads(Operation *op, int64_t heads, int64_t kvHeads);
/// Fails if `dim` of `value` is dynamic.
LogicalResult verifyStaticDim(Operation *op, StringRef name, Value value,
                              unsigned dim);
/// Fails if the capacity, dimension 2 of `k`, does not fit in `k_len`'s int32.
LogicalResult verifyCapacity(Operation *op, Value k);
/// Fails unless an integer attribute is in [1, 2^20], so that products of two
/// do not overflow.
LogicalResult verifyPositive(Operation *op, StringRef name, int64_t value);
/// Fails unless tensors and memrefs are not mixed, and the op has one result
/// per tensor init, of the init's type.
LogicalResult verifyDps(Operation *op);

inline ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}
inline int64_t dimOf(Value value, unsigned dim) {
  return shaped(value).getDimSize(dim);
}
/// ceil(size / divisor), dynamic if `size` is.
int64_t ceilDivDim(int64_t size, int64_t divisor);

} // namespace mlir::pisa

#endif // PISA_LIB_DIALECT_PISA_IR_VERIFIERS_H
