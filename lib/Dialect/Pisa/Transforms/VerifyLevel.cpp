//===- VerifyLevel.cpp - What belongs to each level -------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One ConversionTarget a level. No pass looks up, so these are also the
// contract between passes.
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAVERIFYLEVELPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

enum class Level { Problem, Phase, Tile, Kernel, GpuKernel, Plan, LLVM };

bool hasTensors(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

void setLegal(ConversionTarget &target, Level level) {
  target.addLegalOp<ModuleOp>();
  if (level == Level::LLVM) {
    target.addLegalDialect<LLVM::LLVMDialect>();
    return;
  }
  if (level == Level::Plan) {
    // The host computes sizes, allocates scratch and launches; the bodies of
    // kernels are LLVM's.
    target.addLegalDialect<arith::ArithDialect, func::FuncDialect,
                           gpu::GPUDialect, LLVM::LLVMDialect,
                           NVVM::NVVMDialect>();
    target.addLegalOp<memref::AllocOp, memref::CastOp, memref::DimOp,
                      memref::SubViewOp, scf::ForOp, scf::YieldOp>();
    target.addLegalOp<AwaitCheckOp>();
    return;
  }
  target.addLegalDialect<arith::ArithDialect, func::FuncDialect,
                         affine::AffineDialect, math::MathDialect,
                         scf::SCFDialect, vector::VectorDialect>();
  if (level == Level::GpuKernel)
    target.addLegalDialect<gpu::GPUDialect, NVVM::NVVMDialect>();
  if (level == Level::Kernel || level == Level::GpuKernel) {
    // Kernels run on buffers, and what ran on tensors is gone.
    target.addLegalDialect<memref::MemRefDialect, linalg::LinalgDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return false; });
    target.addLegalDialect<PisaDialect>();
    target.addIllegalOp<BuildPyramidOp, RouteOp, AttentionOp, RouteUpperOp,
                        ScoreBlocksOp, PrescoreBlocksOp, AttendTilesOp>();
    return;
  }
  target.addLegalDialect<tensor::TensorDialect, linalg::LinalgDialect>();
  switch (level) {
  case Level::Problem:
    target.addLegalOp<BuildPyramidOp, RouteOp, AttentionOp>();
    return;
  case Level::Phase:
    target.addLegalOp<bufferization::AllocTensorOp>();
    target.addLegalOp<CountEntriesOp, PlaceEntriesOp, ListEntriesOp,
                      ScoreEntriesOp, AttendEntriesOp, MergeEntriesOp>();
    target.addLegalOp<PoolLeavesOp, PoolNodesOp, RouteUpperOp, ScoreBlocksOp,
                      PrescoreBlocksOp, SelectTopkOp, AttendTilesOp,
                      CheckIndicesOp>();
    return;
  case Level::Tile:
    target.addLegalOp<bufferization::AllocTensorOp>();
    // Not necessarily inside a loop: one of a single iteration folds away.
    target.addLegalOp<CountEntriesOp, PlaceEntriesOp, ListEntriesOp,
                      ScoreEntriesOp, AttendEntriesOp, MergeEntriesOp>();
    target.addLegalOp<PoolLeavesOp, PoolNodesOp, SelectTopkOp, CheckIndicesOp,
                      PackQueriesOp, PackColumnsOp, PackAtomsOp, PackValuesOp,
                      NextBlockOp, ExpandNodesOp, UnionNodesOp, ScoreBlockOp,
                      AttendBlockOp, FinishAttentionOp>();
    return;
  default:
    llvm_unreachable("handled above");
  }
}

struct VerifyLevel : pisa::impl::PisaVerifyLevelPassBase<VerifyLevel> {
  using PisaVerifyLevelPassBase::PisaVerifyLevelPassBase;

  void runOnOperation() override {
    auto parsed = llvm::StringSwitch<std::optional<Level>>(level)
                      .Case("problem", Level::Problem)
                      .Case("phase", Level::Phase)
                      .Case("tile", Level::Tile)
                      .Case("kernel", Level::Kernel)
                      .Case("gpu-kernel", Level::GpuKernel)
                      .Case("plan", Level::Plan)
                      .Case("llvm", Level::LLVM)
                      .Default(std::nullopt);
    if (!parsed) {
      getOperation()->emitError() << "expected 'level' to be problem, phase, "
                                     "tile, kernel, gpu-kernel, plan or llvm, "
                                     "but got '"
                                  << level << "'";
      return signalPassFailure();
    }
    ConversionTarget target(getContext());
    setLegal(target, *parsed);
    WalkResult result = getOperation()->walk([&](Operation *op) {
      std::optional<ConversionTarget::LegalOpDetails> legal =
          target.isLegal(op);
      bool onBuffers = *parsed != Level::Problem && *parsed != Level::Phase &&
                       *parsed != Level::Tile;
      if (legal && !(onBuffers && hasTensors(op)))
        return WalkResult::advance();
      op->emitOpError() << "does not belong to level '" << level << "'";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
