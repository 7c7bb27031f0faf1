//===- BufferizableOpInterfaceImpl.cpp - Bufferization of pisa ops -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::pisa;

namespace {

/// The buffers of an op's operands; scalars stay.
FailureOr<SmallVector<Value>> getBuffers(RewriterBase &rewriter, Operation *op,
                                         const BufferizationOptions &options,
                                         BufferizationState &state) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  return operands;
}

/// Every destination-style op bufferizes to itself on memrefs.
template <typename OpTy>
struct DpsModel
    : DstBufferizableOpInterfaceExternalModel<DpsModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    if (!cast<DestinationStyleOpInterface>(op).isDpsInit(&operand))
      return true;
    // Parallel tiles of these share their inits on purpose: sums are atomic,
    // and every entry has a place of its own. A read would be a conflict
    // between tiles, and each would get a copy of what all of them are to
    // write.
    if (isa<CountEntriesOp, ListEntriesOp, ScoreEntriesOp, AttendEntriesOp>(op))
      return false;
    return cast<PisaOpInterface>(op).readsInit(operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (cast<DestinationStyleOpInterface>(op).hasPureBufferSemantics())
      return success();
    FailureOr<SmallVector<Value>> operands =
        getBuffers(rewriter, op, options, state);
    if (failed(operands))
      return failure();
    Operation *clone = mlir::clone(rewriter, op, TypeRange{}, *operands);
    auto inits = cast<DestinationStyleOpInterface>(clone).getDpsInits();
    replaceOpWithBufferizedValues(rewriter, op,
                                  llvm::to_vector_of<Value>(inits));
    return success();
  }
};

/// An op that only reads its one tensor.
template <typename OpTy>
struct ReaderModel
    : BufferizableOpInterface::ExternalModel<ReaderModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    FailureOr<SmallVector<Value>> operands =
        getBuffers(rewriter, op, options, state);
    if (failed(operands))
      return failure();
    Operation *clone =
        mlir::clone(rewriter, op, op->getResultTypes(), *operands);
    rewriter.replaceOp(op, clone->getResults());
    return success();
  }
};

template <typename... Ops> void attachDps(MLIRContext *context) {
  (Ops::template attachInterface<DpsModel<Ops>>(*context), ...);
}

} // namespace

void pisa::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, PisaDialect *) {
    attachDps<BuildPyramidOp, RouteOp, AttentionOp, PoolLeavesOp, PoolNodesOp,
              RouteUpperOp, ScoreBlocksOp, PrescoreBlocksOp, SelectTopkOp,
              AttendTilesOp, PackQueriesOp, PackColumnsOp, PackAtomsOp,
              PackValuesOp, ExpandNodesOp, UnionNodesOp, ScoreBlockOp,
              AttendBlockOp, FinishAttentionOp, CountEntriesOp, PlaceEntriesOp,
              ListEntriesOp, ScoreEntriesOp, AttendEntriesOp, MergeEntriesOp>(
        context);
    NextBlockOp::attachInterface<ReaderModel<NextBlockOp>>(*context);
    CheckIndicesOp::attachInterface<ReaderModel<CheckIndicesOp>>(*context);
  });
}
