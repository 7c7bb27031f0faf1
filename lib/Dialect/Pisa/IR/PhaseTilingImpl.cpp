//===- PhaseTilingImpl.cpp - TilingInterface of the phase ops ---*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One implementation serves all phases: an op says how each operand maps onto
// the iteration space (TileKind), and a tile of the op is the same op on
// slices.
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::pisa;

static TileKind kindOf(Operation *op, unsigned operandNumber) {
  return cast<PisaOpInterface>(op).getTileKind(operandNumber);
}

/// The first operand of `kind`, null if there is none.
static Value findOperand(Operation *op, TileKind kind) {
  for (OpOperand &operand : op->getOpOperands())
    if (kindOf(op, operand.getOperandNumber()) == kind)
      return operand.get();
  return {};
}

/// The operand whose leading dimensions are the iteration space, and how many.
static std::pair<Value, unsigned> getDomainOperand(Operation *op) {
  if (Value item = findOperand(op, TileKind::Item))
    return {item, 3};
  return {findOperand(op, TileKind::KeyValue), 2};
}

static int64_t getQueryBlock(Operation *op) {
  return op->getAttrOfType<ParamsAttr>("params").getQueryBlock();
}

/// G, query heads of one kv head.
static int64_t getGroupSize(Operation *op) {
  Value q = findOperand(op, TileKind::Query);
  return dimOf(q ? q : findOperand(op, TileKind::Heads), 1) /
         dimOf(findOperand(op, TileKind::KeyValue), 1);
}

static OpFoldResult times(OpBuilder &b, Location loc, OpFoldResult value,
                          int64_t factor) {
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  return affine::makeComposedFoldedAffineApply(b, loc, s0 * factor, {value});
}

/// The slice of operand `operandNumber` that a tile of the domain needs.
static void getSlice(OpBuilder &b, Operation *op, unsigned operandNumber,
                     ArrayRef<OpFoldResult> offsets,
                     ArrayRef<OpFoldResult> sizes,
                     SmallVector<OpFoldResult> &sliceOffsets,
                     SmallVector<OpFoldResult> &sliceSizes) {
  Location loc = op->getLoc();
  Value value = op->getOperand(operandNumber);
  unsigned rank = shaped(value).getRank();
  sliceOffsets.assign(rank, b.getIndexAttr(0));
  sliceSizes = tensor::getMixedSizes(b, loc, value);

  auto take = [&](unsigned dim) {
    sliceOffsets[dim] = offsets[dim];
    sliceSizes[dim] = sizes[dim];
  };
  take(0);
  switch (kindOf(op, operandNumber)) {
  case TileKind::Batch:
    return;
  case TileKind::KeyValue:
    return take(1);
  case TileKind::Item:
    take(1);
    return take(2);
  case TileKind::Heads: {
    int64_t heads = getGroupSize(op);
    sliceOffsets[1] = times(b, loc, offsets[1], heads);
    sliceSizes[1] = times(b, loc, sizes[1], heads);
    return;
  }
  case TileKind::Query: {
    int64_t heads = getGroupSize(op);
    sliceOffsets[1] = times(b, loc, offsets[1], heads);
    sliceSizes[1] = times(b, loc, sizes[1], heads);
    int64_t queryBlock = getQueryBlock(op);
    OpFoldResult length = sliceSizes[2];
    sliceOffsets[2] = times(b, loc, offsets[2], queryBlock);
    sliceSizes[2] = times(b, loc, sizes[2], queryBlock);
    // The last query block of a sequence may be ragged.
    if (queryBlock > 1) {
      AffineExpr s0, s1, s2;
      bindSymbols(b.getContext(), s0, s1, s2);
      AffineMap map = AffineMap::get(0, 3, {s0, s1 - s2}, b.getContext());
      sliceSizes[2] = affine::makeComposedFoldedAffineMin(
          b, loc, map, {sliceSizes[2], length, sliceOffsets[2]});
    }
    return;
  }
  case TileKind::Whole:
  case TileKind::Offset:
    llvm_unreachable("not sliced");
  }
}

SmallVector<utils::IteratorType>
pisa::detail::getLoopIteratorTypes(Operation *op) {
  return SmallVector<utils::IteratorType>(getDomainOperand(op).second,
                                          utils::IteratorType::parallel);
}

SmallVector<Range> pisa::detail::getIterationDomain(Operation *op,
                                                    OpBuilder &b) {
  auto [operand, rank] = getDomainOperand(op);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, op->getLoc(), operand);
  SmallVector<Range> domain;
  for (unsigned i = 0; i < rank; ++i)
    domain.push_back({b.getIndexAttr(0), sizes[i], b.getIndexAttr(1)});
  return domain;
}

FailureOr<TilingResult>
pisa::detail::getTiledImplementation(Operation *op, OpBuilder &b,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes) {
  Location loc = op->getLoc();
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  if (!dpsOp.hasPureTensorSemantics())
    return op->emitOpError("expected tensors to tile, but got memrefs");

  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  SmallVector<Type> resultTypes;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    TileKind kind = kindOf(op, number);
    if (kind == TileKind::Whole) {
      operands.push_back(operand.get());
      continue;
    }
    if (kind == TileKind::Offset) {
      // Leaves are counted in leaves, queries in queries.
      int64_t unit = findOperand(op, TileKind::Query) || isa<SelectTopkOp>(op)
                         ? getQueryBlock(op)
                         : 1;
      AffineExpr s0, s1;
      bindSymbols(b.getContext(), s0, s1);
      OpFoldResult moved = affine::makeComposedFoldedAffineApply(
          b, loc, s0 + s1 * unit, {operand.get(), offsets[2]});
      operands.push_back(getValueOrCreateConstantIndexOp(b, loc, moved));
      continue;
    }
    SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
    getSlice(b, op, number, offsets, sizes, sliceOffsets, sliceSizes);
    SmallVector<OpFoldResult> strides(sliceOffsets.size(), b.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(
        b, loc, operand.get(), sliceOffsets, sliceSizes, strides);
    operands.push_back(slice);
    slices.push_back(slice);
    if (dpsOp.isDpsInit(&operand))
      resultTypes.push_back(slice.getType());
  }
  Operation *tiled = mlir::clone(b, op, resultTypes, operands);
  return TilingResult{
      {tiled}, SmallVector<Value>(tiled->getResults()), std::move(slices)};
}

LogicalResult pisa::detail::getResultTilePosition(
    Operation *op, OpBuilder &b, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  unsigned init = dpsOp.getDpsInitOperand(resultNumber)->getOperandNumber();
  getSlice(b, op, init, offsets, sizes, resultOffsets, resultSizes);
  return success();
}

LogicalResult pisa::detail::getDomainTileFromResultTile(
    Operation *op, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  // Only results that are indexed by the domain itself can be fused; a tile of
  // their other dimensions would recompute.
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  unsigned init = dpsOp.getDpsInitOperand(resultNumber)->getOperandNumber();
  if (kindOf(op, init) != TileKind::Item)
    return failure();
  domainOffsets.assign(offsets.begin(), offsets.begin() + 3);
  domainSizes.assign(sizes.begin(), sizes.begin() + 3);
  return success();
}

FailureOr<TilingResult> pisa::detail::generateResultTileValue(
    Operation *op, OpBuilder &b, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(getDomainTileFromResultTile(op, resultNumber, offsets, sizes,
                                         domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tiled =
      getTiledImplementation(op, b, domainOffsets, domainSizes);
  if (failed(tiled))
    return failure();
  tiled->tiledValues = {tiled->tiledValues[resultNumber]};
  return tiled;
}
