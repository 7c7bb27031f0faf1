//===- TileAndFuse.cpp - Phases into parallel loops over tiles --*- C++ -*-===//
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
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISATILEANDFUSEPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

static bool isPhase(Operation *op) {
  return isa_and_nonnull<PisaOpInterface>(op) && isa<TilingInterface>(op);
}

static bool multipliesMatrices(Operation *op) {
  auto config = op->getAttrOfType<LoweringConfigAttr>("lowering_config");
  return config && config.getOperandType();
}

/// Phases whose lists another phase consumes are fused into it, not tiled; but
/// not where the target multiplies matrices: there each phase has its own needs
/// of registers and memory.
static bool isFusedIntoConsumer(Operation *op) {
  if (multipliesMatrices(op))
    return false;
  return isa<RouteUpperOp, ScoreBlocksOp, PrescoreBlocksOp, SelectTopkOp>(op) &&
         llvm::any_of(op->getUsers(), [](Operation *user) {
           return isa<ScoreBlocksOp, PrescoreBlocksOp, SelectTopkOp>(user);
         });
}

/// Tiles of (batch, kv head, item).
static FailureOr<SmallVector<OpFoldResult>> getTileSizes(OpBuilder &b,
                                                         Operation *op) {
  auto config = op->getAttrOfType<LoweringConfigAttr>("lowering_config");
  if (!config)
    return op->emitOpError(
        "expected a 'lowering_config' to tile, but got none; "
        "run pisa-set-lowering-config");
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(1)};
  if (isa<PoolNodesOp, PlaceEntriesOp>(op))
    return sizes;
  if (isa<ScoreEntriesOp, AttendEntriesOp>(op)) {
    sizes.push_back(b.getIndexAttr(1));
    return sizes;
  }
  if (isa<PoolLeavesOp>(op)) {
    sizes.push_back(b.getIndexAttr(config.getLeafTile()));
    return sizes;
  }
  int64_t queryBlock = op->getAttrOfType<ParamsAttr>("params").getQueryBlock();
  if (config.getQueryTile() % queryBlock != 0)
    return op->emitOpError()
           << "expected 'query_tile' to be a multiple of "
              "'query_block' = "
           << queryBlock << ", but got " << config.getQueryTile();
  sizes.push_back(b.getIndexAttr(config.getQueryTile() / queryBlock));
  return sizes;
}

namespace {
struct TileAndFuse : pisa::impl::PisaTileAndFusePassBase<TileAndFuse> {
  void runOnOperation() override {
    SmallVector<TilingInterface> roots;
    getOperation()->walk([&](TilingInterface op) {
      if (isPhase(op) && !isFusedIntoConsumer(op) &&
          !op->getParentOfType<scf::ForallOp>())
        roots.push_back(op);
    });

    IRRewriter rewriter(&getContext());
    for (TilingInterface root : roots) {
      rewriter.setInsertionPoint(root);
      FailureOr<SmallVector<OpFoldResult>> sizes = getTileSizes(rewriter, root);
      if (failed(sizes))
        return signalPassFailure();
      scf::SCFTileAndFuseOptions options;
      options.tilingOptions.setTileSizes(*sizes).setLoopType(
          scf::SCFTilingOptions::LoopType::ForallOp);
      // A loop of one iteration folds away, unless it is mapped; on GPUs its
      // body is a task all the same.
      if (multipliesMatrices(root)) {
        SmallVector<Attribute> mapping;
        for (gpu::MappingId id :
             {gpu::MappingId::DimZ, gpu::MappingId::DimY, gpu::MappingId::DimX})
          mapping.push_back(gpu::GPUBlockMappingAttr::get(&getContext(), id));
        options.tilingOptions.setMapping(
            ArrayRef(mapping).take_back(sizes->size()));
      }
      // Lists flow from phase to phase; keys, pyramids and inits do not.
      options.setFusionControlFn(
          [](tensor::ExtractSliceOp, OpResult producer, bool isDestination)
              -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
            if (isDestination || !isFusedIntoConsumer(producer.getOwner()))
              return std::nullopt;
            return scf::SCFTileAndFuseOptions::ControlFnResult{};
          });
      FailureOr<scf::SCFTileAndFuseResult> tiled =
          scf::tileConsumerAndFuseProducersUsingSCF(rewriter, root, options);
      if (failed(tiled)) {
        root->emitOpError("expected the phase to tile, but its tiling failed");
        return signalPassFailure();
      }
      ++numTiled;
      numFused += tiled->fusedProducers.size();
      SmallVector<Value> replacements;
      for (OpResult result : root->getResults())
        replacements.push_back(tiled->replacements.lookup(result));
      rewriter.replaceOp(root, replacements);
      // Fused producers are dead now, consumers first.
      for (Operation *producer : tiled->fusedProducers)
        if (producer->use_empty())
          rewriter.eraseOp(producer);
    }
  }
};
} // namespace
