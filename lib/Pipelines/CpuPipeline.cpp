//===- CpuPipeline.cpp - From problems to LLVM for the CPU ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Pipelines/Pipelines.h"

#include "Stages.h"

#include "pisa/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/VectorTransforms.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::pisa;

void pisa::verifyLevel(OpPassManager &pm, StringRef level) {
  PisaVerifyLevelPassOptions options;
  options.level = level.str();
  pm.addPass(createPisaVerifyLevelPass(options));
}

void pisa::cleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void pisa::addPhases(OpPassManager &pm,
                     const PisaSetLoweringConfigPassOptions &config,
                     bool checkInputs) {
  verifyLevel(pm, "problem");
  pm.addPass(createPisaSetLoweringConfigPass(config));
  PisaDecomposePassOptions decompose;
  decompose.checkInputs = checkInputs;
  pm.addPass(createPisaDecomposePass(decompose));
  cleanUp(pm);
  verifyLevel(pm, "phase");
}

void pisa::buildPhases(OpPassManager &pm, const CpuPipelineOptions &options) {
  PisaSetLoweringConfigPassOptions config;
  config.vectorBits = options.vectorBits;
  addPhases(pm, config, options.checkInputs);
}

void pisa::buildTiles(OpPassManager &pm) {
  pm.addPass(createPisaTileAndFusePass());
  cleanUp(pm);
  pm.addPass(createPisaDecomposeTilesPass());
  // CSE shares the packed queries of the phases of one task.
  cleanUp(pm);
  verifyLevel(pm, "tile");
}

void pisa::buildKernels(OpPassManager &pm) {
  pm.addPass(createPisaBufferizePass());
  cleanUp(pm);
  // Scratch of a loop's body is allocated once per task.
  pm.addNestedPass<func::FuncOp>(bufferization::createBufferLoopHoistingPass());
  bufferization::buildBufferDeallocationPipeline(
      pm, bufferization::BufferDeallocationPipelineOptions());
  cleanUp(pm);
  verifyLevel(pm, "kernel");
}

void pisa::buildCpuCode(OpPassManager &pm) {
  pm.addPass(createConvertPisaToVectorPass());
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(createPisaExpandMathPass());
  pm.addPass(createPisaOutlineTasksPass());
  cleanUp(pm);
  pm.addPass(createLoopInvariantCodeMotionPass());

  // Upstream from here on.
  pm.addPass(createConvertMathToLLVMPass());
  arith::ArithExpandOpsPassOptions expand;
  // bf16 conversions are a few integer ops; the C library's may not exist.
  expand.includeBf16 = true;
  pm.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass(expand));
  ConvertVectorToLLVMPassOptions vectors;
  vectors.vectorTransposeLowering =
      vector::VectorTransposeLowering::Shuffle16x16;
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  FinalizeMemRefToLLVMConversionPassOptions memrefs;
  // Scratch comes from the runtime, which counts and bounds it.
  memrefs.useGenericFunctions = true;
  pm.addPass(createFinalizeMemRefToLLVMConversionPass(memrefs));
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  verifyLevel(pm, "llvm");
}

void pisa::buildCpuPipeline(OpPassManager &pm,
                            const CpuPipelineOptions &options) {
  buildPhases(pm, options);
  buildTiles(pm);
  buildKernels(pm);
  buildCpuCode(pm);
}

ArrayRef<StringRef> pisa::getLevelNames() {
  static const StringRef names[] = {"problem", "phase", "tile", "kernel",
                                    "llvm"};
  return names;
}

ArrayRef<StringRef> pisa::getNvptxLevelNames() {
  static const StringRef names[] = {"problem", "phase", "tile", "gpu-kernel",
                                    "plan"};
  return names;
}

void pisa::registerPipelines() {
  PassPipelineRegistration<CpuPipelineOptions>(
      "pisa-cpu-pipeline",
      "Lower problem ops on tensors to the LLVM dialect for the CPU",
      buildCpuPipeline);
  PassPipelineRegistration<NvptxPipelineOptions>(
      "pisa-nvptx-pipeline",
      "Lower problem ops on tensors to kernels for NVIDIA GPUs",
      buildNvptxPipeline);
}
