//===- NvptxPipeline.cpp - From problems to kernels for GPUs ----*- C++ -*-===//
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
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::pisa;

void pisa::buildGpuKernels(OpPassManager &pm,
                           const NvptxPipelineOptions &options) {
  pm.addPass(createPisaBufferizePass());
  cleanUp(pm);
  pm.addNestedPass<func::FuncOp>(bufferization::createBufferLoopHoistingPass());
  pm.addPass(createPisaExpandChecksPass());
  pm.addPass(createPisaWrapHostOpsPass());
  cleanUp(pm);
  PisaAssignMemorySpacesPassOptions spaces;
  spaces.numWarps = options.numWarps;
  spaces.maxSharedBytes = options.maxSharedBytes;
  pm.addPass(createPisaAssignMemorySpacesPass(spaces));
  if (options.pipelineCopies) {
    PisaPipelineCopiesPassOptions copies;
    copies.maxSharedBytes = options.maxSharedBytes;
    pm.addPass(createPisaPipelineCopiesPass(copies));
  }
  pm.addPass(createPisaInsertBarriersPass());
  verifyLevel(pm, "gpu-kernel");
}

void pisa::buildGpuCode(OpPassManager &pm) {
  pm.addPass(createConvertPisaToGPUPass());
  cleanUp(pm);
  pm.addPass(createPisaDistributeFragmentsPass());
  pm.addPass(createPisaOutlineKernelsPass());
  cleanUp(pm);
  pm.addPass(createLoopInvariantCodeMotionPass());

  // Upstream from here on. The host keeps sizes, scratch and launches.
  pm.addPass(createLowerAffinePass());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  // 64-bit indices cost twice, and divisions of them far more. Thread numbers
  // and places in a task fit in 32 bits.
  arith::ArithIntRangeNarrowingOptions narrow;
  narrow.bitwidthsSupported = {32};
  kernels.addPass(arith::createArithIntRangeNarrowing(narrow));
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createPisaLowerAddressSpacesPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createConvertNVGPUToNVVMPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  // Runs on modules only.
  pm.addPass(createConvertControlFlowToLLVMPass());
  OpPassManager &code = pm.nest<gpu::GPUModuleOp>();
  ConvertGpuOpsToNVVMOpsOptions gpu;
  gpu.useBarePtrCallConv = false;
  code.addPass(createConvertGpuOpsToNVVMOps(gpu));
  code.addPass(createConvertIndexToLLVMPass());
  code.addPass(createConvertNVVMToLLVMPass());
  code.addPass(createCanonicalizerPass());
  code.addPass(createCSEPass());
  code.addPass(createReconcileUnrealizedCastsPass());
  verifyLevel(pm, "plan");
}

void pisa::buildNvptxPipeline(OpPassManager &pm,
                              const NvptxPipelineOptions &options) {
  PisaSetLoweringConfigPassOptions config;
  config.target = "nvptx";
  config.taskRows = options.taskRows;
  config.partialBytes = options.partialBytes;
  addPhases(pm, config, options.checkInputs);
  buildTiles(pm);
  buildGpuKernels(pm, options);
  buildGpuCode(pm);
}
