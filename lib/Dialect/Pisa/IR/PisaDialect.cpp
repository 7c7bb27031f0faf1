//===- PisaDialect.cpp - Dialect registration and shared interface bodies -*-
// C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::pisa;

#include "pisa/Dialect/Pisa/IR/PisaDialect.cpp.inc"
#include "pisa/Dialect/Pisa/IR/PisaInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "pisa/Dialect/Pisa/IR/PisaAttrs.cpp.inc"

// Generated code is half of this library: it stands apart from what changes.
#define GET_OP_CLASSES
#include "pisa/Dialect/Pisa/IR/PisaOps.cpp.inc"

void PisaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "pisa/Dialect/Pisa/IR/PisaAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "pisa/Dialect/Pisa/IR/PisaOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Shared interface bodies
//===----------------------------------------------------------------------===//

void pisa::detail::getEffects(
    Operation *op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // On tensors an op is pure; on memrefs it reads its inputs and writes (and
  // where it says so reads) its inits.
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  auto pisaOp = cast<PisaOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = dpsOp.isDpsInit(&operand);
    if (!isInit || pisaOp.readsInit(operand))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

LogicalResult
pisa::detail::reifyResultShapes(Operation *op, OpBuilder &b,
                                ReifiedRankedShapedTypeDims &shapes) {
  auto dpsOp = cast<DestinationStyleOpInterface>(op);
  for (OpResult result : op->getResults())
    shapes.push_back(tensor::getMixedSizes(
        b, op->getLoc(), dpsOp.getTiedOpOperand(result)->get()));
  return success();
}

void CheckIndicesOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // Reporting is an effect on the runtime: the op must not be dropped.
  effects.emplace_back(MemoryEffects::Write::get());
  if (isa<MemRefType>(getIndices().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getIndicesMutable());
}

void CheckRowsOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getListsMutable());
  effects.emplace_back(MemoryEffects::Read::get(), &getStatusMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getStatusMutable());
}

void AwaitCheckOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getStatusMutable());
  effects.emplace_back(MemoryEffects::Write::get());
}

void NextBlockOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (isa<MemRefType>(getLists().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getListsMutable());
}
