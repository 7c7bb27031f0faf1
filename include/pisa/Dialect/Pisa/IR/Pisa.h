//===- Pisa.h - The pisa dialect's attributes and ops -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_DIALECT_PISA_IR_PISA_H
#define PISA_DIALECT_PISA_IR_PISA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"
#include <optional>

namespace mlir::pisa {

using linalg::AggregatedOpInterface;

/// The largest head dimension, of keys and of values.
constexpr int64_t kMaxHeadDim = 256;
/// Head dimensions are multiples of this.
constexpr int64_t kHeadDimMultiple = 8;

/// How an operand of a phase maps onto its iteration space
/// (batch, kv head, item), where an item is a query block or a leaf.
enum class TileKind {
  Whole,    ///< needed as it is by every tile
  Batch,    ///< [B]
  KeyValue, ///< [B, Hkv, ...], whole sequences
  Query,    ///< [B, Hq, Tq, ...]: G heads a kv head, Q queries an item
  Item,     ///< [B, Hkv, item, ...]
  Heads,    ///< [B, Hq, Tq, ...]: G heads a kv head, all queries
  Offset,   ///< index of the first item's query (or leaf) in its sequence
};

namespace detail {
// Shared bodies of the interface methods of all ops.
void getEffects(
    Operation *op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects);
LogicalResult reifyResultShapes(Operation *op, OpBuilder &b,
                                ReifiedRankedShapedTypeDims &shapes);
SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op);
SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &b);
FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &b,
                                               ArrayRef<OpFoldResult> offsets,
                                               ArrayRef<OpFoldResult> sizes);
LogicalResult getResultTilePosition(Operation *op, OpBuilder &b,
                                    unsigned resultNumber,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes,
                                    SmallVector<OpFoldResult> &resultOffsets,
                                    SmallVector<OpFoldResult> &resultSizes);
LogicalResult getDomainTileFromResultTile(
    Operation *op, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes);
FailureOr<TilingResult> generateResultTileValue(Operation *op, OpBuilder &b,
                                                unsigned resultNumber,
                                                ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes);
} // namespace detail

} // namespace mlir::pisa

#include "pisa/Dialect/Pisa/IR/PisaInterfaces.h.inc"

#include "pisa/Dialect/Pisa/IR/PisaDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "pisa/Dialect/Pisa/IR/PisaAttrs.h.inc"

#define GET_OP_CLASSES
#include "pisa/Dialect/Pisa/IR/PisaOps.h.inc"

#endif // PISA_DIALECT_PISA_IR_PISA_H
