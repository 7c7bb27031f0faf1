//===- ExpandChecks.cpp - Checks into tasks and a report --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAEXPANDCHECKSPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

/// Lists that one task checks.
static constexpr int64_t kListsPerTask = 64;

namespace {
struct ExpandChecks : pisa::impl::PisaExpandChecksPassBase<ExpandChecks> {
  void runOnOperation() override {
    SmallVector<CheckIndicesOp> checks;
    getOperation()->walk([&](CheckIndicesOp op) { checks.push_back(op); });
    for (CheckIndicesOp op : checks)
      expand(op);
  }

  static void expand(CheckIndicesOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value indices = op.getIndices();
    auto type = cast<MemRefType>(indices.getType());
    auto statusType = MemRefType::get({1}, b.getI64Type());
    Value status = memref::AllocOp::create(b, statusType);
    Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(-1));
    linalg::FillOp::create(b, none, status);

    SmallVector<OpFoldResult> ends;
    for (int64_t d = 0; d < 3; ++d)
      ends.push_back(memref::DimOp::create(b, indices, d).getResult());
    Value heads = cast<Value>(ends[1]), queryBlocks = cast<Value>(ends[2]);
    SmallVector<OpFoldResult> begins(3, b.getIndexAttr(0));
    SmallVector<OpFoldResult> steps = {b.getIndexAttr(1), b.getIndexAttr(1),
                                       b.getIndexAttr(kListsPerTask)};
    // A mapped loop stays a task if it has but one iteration.
    SmallVector<Attribute> mapping;
    for (gpu::MappingId id :
         {gpu::MappingId::DimZ, gpu::MappingId::DimY, gpu::MappingId::DimX})
      mapping.push_back(gpu::GPUBlockMappingAttr::get(b.getContext(), id));
    auto loop = scf::ForallOp::create(b, begins, ends, steps, ValueRange{},
                                      b.getArrayAttr(mapping));
    AwaitCheckOp::create(b, status, heads, queryBlocks);

    b.setInsertionPointToStart(loop.getBody());
    Value batch = loop.getInductionVar(0), head = loop.getInductionVar(1),
          first = loop.getInductionVar(2);
    AffineExpr begin, end;
    bindDims(b.getContext(), begin);
    bindSymbols(b.getContext(), end);
    Value count = affine::AffineMinOp::create(
        b, b.getIndexType(),
        AffineMap::get(
            1, 1,
            {end - begin, getAffineConstantExpr(kListsPerTask, b.getContext())},
            b.getContext()),
        ValueRange{first, queryBlocks});
    SmallVector<OpFoldResult> offsets = {batch, head, first, b.getIndexAttr(0)};
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(1),
                                       count,
                                       b.getIndexAttr(type.getDimSize(3))};
    SmallVector<OpFoldResult> ones(4, b.getIndexAttr(1));
    Value lists = memref::SubViewOp::create(b, indices, offsets, sizes, ones);
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddIOp::create(b, x, y);
    };
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulIOp::create(b, x, y);
    };
    Value row = add(mul(add(mul(batch, heads), head), queryBlocks), first);
    CheckRowsOp::create(b, lists, row, status);
    op.erase();
  }
};
} // namespace
