//===- Checks.cpp - Checks of lists, one warp a list ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::pisa;

namespace {
/// Each lane looks for the first entry of its own that stands before already;
/// the first of the warp's is what the CPU would report.
struct CheckRows : TaskPattern<CheckRowsOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(CheckRowsOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value lists = op.getLists();
    int64_t width = e.staticDim(lists, 3);
    Value zero = e.idx(0), none = e.i32(static_cast<int32_t>(width));
    auto entryAt = [&](Value j, Value i) {
      return e.load(lists, {zero, zero, j, i});
    };
    e.forEachWarp(e.dim(lists, 2), [&](Value j) {
      Value mine = e.forEachLane(
          e.idx(width), none,
          [&](Value i, ValueRange best) -> SmallVector<Value> {
            Value entry = entryAt(j, i);
            Value no = arith::ConstantOp::create(e, e.getBoolAttr(false));
            Value found = e.loop(
                zero, i, 1, no,
                [&](Value before, ValueRange sofar) -> SmallVector<Value> {
                  Value same = e.cmp(arith::CmpIPredicate::eq, entry,
                                     entryAt(j, before));
                  return {arith::OrIOp::create(e, sofar[0], same)};
                })[0];
            found = e.both(found,
                           e.cmp(arith::CmpIPredicate::sge, entry, e.i32(0)));
            Value place = arith::SelectOp::create(e, found, e.toI32(i), none);
            return {e.min(best[0], place)};
          })[0];
      Value first = e.minOfWarp(mine);
      Value reports = e.both(e.cmp(arith::CmpIPredicate::ne, first, none),
                             e.cmp(arith::CmpIPredicate::eq, e.lane(), zero));
      e.when(reports, [&] {
        // 33 bits for the list: more lists than those fit in no memory.
        Type i64 = e.getI64Type();
        Value row =
            arith::IndexCastOp::create(e, i64, e.add(op.getFirstRow(), j));
        Value bits = arith::ConstantOp::create(e, e.getI64IntegerAttr(31));
        Value entry = entryAt(j, e.toIndex(first));
        Value code =
            arith::OrIOp::create(e, arith::ShLIOp::create(e, row, bits),
                                 arith::ExtUIOp::create(e, i64, entry));
        memref::AtomicRMWOp::create(e, arith::AtomicRMWKind::minu, code,
                                    op.getStatus(), zero);
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void pisa::populateGPUCheckPatterns(RewritePatternSet &patterns,
                                    const TaskContext &task) {
  patterns.add<CheckRows>(patterns.getContext(), task);
}
