//===- Verifiers.cpp - Checks that several op verifiers share ---*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"

#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

int64_t pisa::ceilDivDim(int64_t size, int64_t divisor) {
  return ShapedType::isDynamic(size) ? size
                                     : llvm::divideCeilSigned(size, divisor);
}

LogicalResult pisa::verifyShape(Operation *op, const OperandShape &shape) {
  if (!shape.value)
    return success();
  ArrayRef<int64_t> actual = shaped(shape.value).getShape();
  for (auto [i, want] : llvm::enumerate(shape.dims)) {
    if (ShapedType::isDynamic(want) || ShapedType::isDynamic(actual[i]) ||
        want == actual[i])
      continue;
    return op->emitOpError()
           << "expected dimension " << i << " of '" << shape.name << "' "
           << shape.symbols << " to be " << want << ", but got " << actual[i];
  }
  return success();
}

LogicalResult pisa::verifyShapes(Operation *op, ArrayRef<OperandShape> shapes) {
  for (const OperandShape &shape : shapes)
    if (failed(verifyShape(op, shape)))
      return failure();
  return success();
}

LogicalResult pisa::verifySameElementType(Operation *op, StringRef name,
                                          Value value, StringRef otherName,
                                          Value other) {
  return verifyElementType(op, name, value, shaped(other).getElementType(),
                           ("that of '" + otherName + "'").str());
}

LogicalResult pisa::verifyElementType(Operation *op, StringRef name,
                                      Value value, Type type, StringRef why) {
  if (!value || shaped(value).getElementType() == type)
    return success();
  return op->emitOpError() << "expected element type of '" << name << "' to be "
                           << type << ", " << why << ", but got "
                           << shaped(value).getElementType();
}

LogicalResult pisa::verifyHeadDim(Operation *op, StringRef name, Value value) {
  int64_t dim = shaped(value).getShape().back();
  if (!ShapedType::isDynamic(dim) && dim >= kHeadDimMultiple &&
      dim <= kMaxHeadDim && dim % kHeadDimMultiple == 0)
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "expected head dimension of '" << name
                            << "' to be a static multiple of "
                            << kHeadDimMultiple << " in [" << kHeadDimMultiple
                            << ", " << kMaxHeadDim << "], but got ";
  return ShapedType::isDynamic(dim) ? diag << "a dynamic one" : diag << dim;
}

LogicalResult pisa::verifyHeads(Operation *op, int64_t heads, int64_t kvHeads) {
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads))
    return op->emitOpError() << "expected the numbers of heads to be static, "
                                "but got a dynamic one";
  if (kvHeads > 0 && heads > 0 && heads % kvHeads == 0)
    return success();
  return op->emitOpError()
         << "expected the number of query heads to be a "
            "positive multiple of the number of kv heads, but "
            "got "
         << heads << " and " << kvHeads;
}

LogicalResult pisa::verifyStaticDim(Operation *op, StringRef name, Value value,
                                    unsigned dim) {
  if (!shaped(value).isDynamicDim(dim) && dimOf(value, dim) > 0)
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "expected dimension " << dim << " of '" << name
                            << "' to be static and positive, but got ";
  return shaped(value).isDynamicDim(dim) ? diag << "a dynamic one"
                                         : diag << dimOf(value, dim);
}

LogicalResult pisa::verifyPositive(Operation *op, StringRef name,
                                   int64_t value) {
  constexpr int64_t most = 1 << 20;
  if (value >= 1 && value <= most)
    return success();
  return op->emitOpError() << "expected '" << name << "' to be in [1, " << most
                           << "], but got " << value;
}

LogicalResult pisa::verifyCapacity(Operation *op, Value k) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (shaped(k).isDynamicDim(2) || dimOf(k, 2) <= most)
    return success();
  return op->emitOpError() << "expected at most " << most
                           << " keys in a sequence, but got " << dimOf(k, 2);
}

LogicalResult pisa::verifyDps(Operation *op) {
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  bool hasTensor = false, hasMemRef = false;
  for (Value operand : op->getOperands()) {
    hasTensor |= isa<TensorType>(operand.getType());
    hasMemRef |= isa<BaseMemRefType>(operand.getType());
  }
  if (hasTensor && hasMemRef)
    return op->emitOpError(
        "expected operands to be all tensors or all memrefs, "
        "but got both");
  size_t inits = hasTensor ? dpsOp.getNumDpsInits() : 0;
  if (op->getNumResults() != inits)
    return op->emitOpError() << "expected as many results as tensor inits, "
                             << inits << ", but got " << op->getNumResults();
  for (auto [result, init] :
       llvm::zip(op->getResultTypes(), dpsOp.getDpsInits()))
    if (result != init.getType())
      return op->emitOpError()
             << "expected result type to be that of its init, "
             << init.getType() << ", but got " << result;
  return success();
}
