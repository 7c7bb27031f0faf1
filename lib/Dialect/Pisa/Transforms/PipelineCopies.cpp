//===- PipelineCopies.cpp - Copy the next block during this one -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/Transforms/Passes.h"
#include "pisa/Dialect/Pisa/Transforms/TaskMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAPIPELINECOPIESPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// A loop over the blocks of a union, whose body copies a block and works on
/// it.
struct BlockLoop {
  scf::WhileOp loop;
  NextBlockOp next;
  SmallVector<Operation *> copies;
  /// Views of workgroup memory that the copies write, each with a second place.
  SmallVector<memref::ViewOp> views;
  SmallVector<int64_t> first, second;
};

bool isCopy(Operation *op) {
  return isa<PackColumnsOp, PackAtomsOp, PackValuesOp>(op);
}

/// Makes `buffer` again on top of another view.
Value rebase(OpBuilder &b, Value buffer, memref::ViewOp from, Value to) {
  if (buffer == from.getResult())
    return to;
  // A chain of views, transpositions and casts: what they alias comes first.
  Operation *op = buffer.getDefiningOp();
  IRMapping mapping;
  Value source = op->getOperand(0);
  mapping.map(source, rebase(b, source, from, to));
  return b.clone(*op, mapping)->getResult(0);
}

struct PipelineCopies : pisa::impl::PisaPipelineCopiesPassBase<PipelineCopies> {
  using PisaPipelineCopiesPassBase::PisaPipelineCopiesPassBase;

  void runOnOperation() override {
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForallOp task) {
      SmallVector<scf::WhileOp> loops;
      task.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
      for (scf::WhileOp loop : loops)
        if (std::optional<BlockLoop> found = match(loop))
          pipeline(task, *found);
      return WalkResult::skip();
    });
  }

  static std::optional<BlockLoop> match(scf::WhileOp loop) {
    BlockLoop result{loop};
    if (loop.getInits().size() != 1 || loop->getNumResults() != 1)
      return std::nullopt;
    auto nexts = loop.getBeforeBody()->getOps<NextBlockOp>();
    if (std::distance(nexts.begin(), nexts.end()) != 1)
      return std::nullopt;
    result.next = *nexts.begin();
    for (Operation &op : *loop.getAfterBody())
      if (isCopy(&op))
        result.copies.push_back(&op);
    for (Operation *copy : result.copies)
      for (Value init : cast<DestinationStyleOpInterface>(copy).getDpsInits()) {
        auto view = getStorage(init).getDefiningOp<memref::ViewOp>();
        APInt offset;
        if (!view || loop->isAncestor(view) ||
            !matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
          return std::nullopt;
        result.views.push_back(view);
        result.first.push_back(offset.getSExtValue());
      }
    if (result.copies.empty())
      return std::nullopt;
    return result;
  }

  void pipeline(scf::ForallOp task, BlockLoop &found) {
    scf::WhileOp loop = found.loop;
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    auto total = task->getAttrOfType<IntegerAttr>(kSharedBytesAttr);
    int64_t end = total.getInt();
    for (memref::ViewOp view : found.views) {
      auto type = cast<MemRefType>(view.getType());
      found.second.push_back(end);
      end += llvm::alignTo(static_cast<uint64_t>(type.getNumElements() *
                                                 type.getElementTypeBitWidth() /
                                                 8),
                           16);
    }
    if (end > maxSharedBytes)
      return;
    task->setAttr(kSharedBytesAttr, b.getI64IntegerAttr(end));
    ++numPipelined;

    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    // Buffers of a stage, as `mapping` from those of the first.
    auto mapStage = [&](IRMapping &mapping, Value stage) {
      for (auto [view, first, second] :
           llvm::zip(found.views, found.first, found.second)) {
        Value distance = arith::MulIOp::create(b, stage, index(second - first));
        Value shift = arith::AddIOp::create(b, index(first), distance);
        Value again = memref::ViewOp::create(
            b, view.getType(), view.getSource(), shift, view.getSizes());
        for (Operation &op : *loop.getAfterBody())
          for (Value operand : op.getOperands())
            if (isa<MemRefType>(operand.getType()) &&
                !mapping.contains(operand) &&
                getStorage(operand) == view.getResult())
              mapping.map(operand, rebase(b, operand, view, again));
      }
    };
    auto copyBlock = [&](IRMapping mapping, Value block) {
      mapping.map(loop.getAfterArguments()[0], block);
      for (Operation *copy : found.copies)
        b.clone(*copy, mapping);
    };
    auto nextAfter = [&](Value after) -> Value {
      IRMapping mapping;
      mapping.map(found.next.getAfter(), after);
      return b.clone(*found.next, mapping)->getResult(0);
    };
    auto waitForCopies = [&] {
      NVVM::CpAsyncCommitGroupOp::create(b);
      NVVM::CpAsyncWaitGroupOp::create(b, b.getI32IntegerAttr(0));
      createTaskBarrier(b, b.getLoc());
    };

    Value limit = found.next.getLimit();
    Value firstBlock = nextAfter(loop.getInits()[0]);
    copyBlock(IRMapping(), firstBlock);
    Type type = b.getIndexType();
    scf::WhileOp::create(
        b, loop.getLoc(), TypeRange{type, type},
        ValueRange{firstBlock, index(0)},
        [&](OpBuilder &builder, Location, ValueRange args) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(builder.getInsertionBlock());
          Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                             args[0], limit);
          scf::ConditionOp::create(b, more, args);
        },
        [&](OpBuilder &builder, Location, ValueRange args) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(builder.getInsertionBlock());
          // This block has arrived, and nobody reads the last one any more.
          waitForCopies();
          Value next = nextAfter(args[0]);
          Value other = arith::SubIOp::create(b, index(1), args[1]);
          IRMapping coming, here;
          mapStage(coming, other);
          copyBlock(coming, next);
          mapStage(here, args[1]);
          here.map(loop.getAfterArguments()[0], args[0]);
          for (Operation &op : loop.getAfterBody()->without_terminator())
            if (!isCopy(&op))
              b.clone(op, here);
          scf::YieldOp::create(b, ValueRange{next, other});
        });
    waitForCopies();
    loop.erase();
  }
};
} // namespace
