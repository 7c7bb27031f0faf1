//===- InsertBarriers.cpp - Order the tile ops of a GPU task ----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/Transforms/Passes.h"
#include "pisa/Dialect/Pisa/Transforms/TaskMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAINSERTBARRIERSPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// Accesses of workgroup memory since the last barrier.
struct Pending {
  SmallVector<ByteRange> reads, writes;
  bool copies = false; ///< asynchronous ones among the writes

  void clear() { *this = Pending(); }
  void merge(const Pending &other) {
    llvm::append_range(reads, other.reads);
    llvm::append_range(writes, other.writes);
    copies |= other.copies;
  }
};

bool overlap(ArrayRef<ByteRange> xs, ArrayRef<ByteRange> ys) {
  return llvm::any_of(xs, [&](const ByteRange &x) {
    return llvm::any_of(ys, [&](const ByteRange &y) { return x.overlaps(y); });
  });
}

struct InsertBarriers : pisa::impl::PisaInsertBarriersPassBase<InsertBarriers> {
  using PisaInsertBarriersPassBase::PisaInsertBarriersPassBase;

  void runOnOperation() override {
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForallOp task) {
      Pending pending;
      visit(*task.getBody(), pending);
      return WalkResult::skip();
    });
  }

  /// Accesses of one op, without those of the ops in its regions.
  Pending getAccesses(Operation *op) {
    Pending result;
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects ||
        (op->getNumRegions() > 0 && !isa<DestinationStyleOpInterface>(op)))
      return result;
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    for (const MemoryEffects::EffectInstance &effect : instances) {
      Value value = effect.getValue();
      if (!value || !isa<MemRefType>(value.getType()))
        continue;
      std::optional<ByteRange> range = getWorkgroupRange(value);
      if (!range)
        continue;
      if (isa<MemoryEffects::Read>(effect.getEffect()))
        result.reads.push_back(*range);
      if (isa<MemoryEffects::Write>(effect.getEffect()))
        result.writes.push_back(*range);
    }
    if (std::optional<ByteRange> scratch = getScratchRange(op))
      result.writes.push_back(*scratch);
    result.copies =
        isa<PackQueriesOp, PackColumnsOp, PackAtomsOp, PackValuesOp>(op);
    return result;
  }

  void barrierBefore(Operation *op, Pending &pending) {
    OpBuilder b(op);
    if (pending.copies) {
      NVVM::CpAsyncCommitGroupOp::create(b, op->getLoc());
      NVVM::CpAsyncWaitGroupOp::create(b, op->getLoc(), b.getI32IntegerAttr(0));
    }
    createTaskBarrier(b, op->getLoc());
    ++numBarriers;
    pending.clear();
  }

  void visit(Block &block, Pending &pending) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<gpu::BarrierOp>(op)) {
        pending.clear();
        continue;
      }
      Pending accesses = getAccesses(&op);
      if (overlap(accesses.reads, pending.writes) ||
          overlap(accesses.writes, pending.writes) ||
          overlap(accesses.writes, pending.reads))
        barrierBefore(&op, pending);
      pending.merge(accesses);
      if (op.getNumRegions() == 0 || isa<DestinationStyleOpInterface>(op))
        continue;
      // A loop's body follows itself: visited twice, the second time with what
      // the first left. A branch follows what came before.
      bool isLoop = isa<LoopLikeOpInterface>(op);
      Pending before = pending;
      for (int round = 0; round < (isLoop ? 2 : 1); ++round) {
        Pending after = before;
        for (Region &region : op.getRegions())
          for (Block &inner : region) {
            Pending branch = isLoop ? pending : before;
            visit(inner, branch);
            if (isLoop)
              pending = branch;
            after.merge(branch);
          }
        pending = after;
      }
    }
  }
};
} // namespace
