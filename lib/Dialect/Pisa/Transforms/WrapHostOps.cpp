//===- WrapHostOps.cpp - Work between tasks into tasks ----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAWRAPHOSTOPSPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

/// Row `i` of a buffer's first dimension, of size 1.
static Value getRow(ImplicitLocOpBuilder &b, Value buffer, Value i) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(memref::DimOp::create(b, buffer, d).getResult());
  offsets[0] = i;
  sizes[0] = b.getIndexAttr(1);
  for (int64_t d = 1; d < rank; ++d)
    if (!type.isDynamicDim(d))
      sizes[d] = b.getIndexAttr(type.getDimSize(d));
  return memref::SubViewOp::create(b, buffer, offsets, sizes, strides);
}

namespace {
struct WrapHostOps : pisa::impl::PisaWrapHostOpsPassBase<WrapHostOps> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      bool touchesMemory =
          isa<linalg::LinalgOp>(op) || isa<PisaOpInterface>(op);
      if (touchesMemory && !op->getParentOfType<scf::ForallOp>())
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(wrap(op)))
        return signalPassFailure();
  }

  /// A loop of one task a row of the first dimension, or of a single task.
  LogicalResult wrap(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    OpFoldResult end = b.getIndexAttr(1);
    Value first;
    if (isa<linalg::LinalgOp>(op))
      first = cast<DestinationStyleOpInterface>(op).getDpsInits()[0];
    if (first) {
      if (cast<MemRefType>(first.getType()).getRank() == 0)
        return op->emitOpError("expected buffers of rank 1 or more, but got ")
               << first.getType();
      end = memref::DimOp::create(b, first, 0).getResult();
    }
    auto loop = scf::ForallOp::create(
        b, ArrayRef<OpFoldResult>{b.getIndexAttr(0)}, ArrayRef{end},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)}, ValueRange{},
        // A mapped loop stays if it has but one iteration.
        b.getArrayAttr(gpu::GPUBlockMappingAttr::get(
            b.getContext(), gpu::MappingId::LinearDim0)));
    b.setInsertionPointToStart(loop.getBody());
    IRMapping mapping;
    if (first)
      for (Value operand : op->getOperands())
        if (isa<MemRefType>(operand.getType()) && !mapping.contains(operand))
          mapping.map(operand, getRow(b, operand, loop.getInductionVar(0)));
    b.clone(*op, mapping);
    op->erase();
    return success();
  }
};
} // namespace
