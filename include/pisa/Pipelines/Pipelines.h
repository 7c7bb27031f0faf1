//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_PIPELINES_PIPELINES_H
#define PISA_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::pisa {

/// Options of `pisa-cpu-pipeline`.
struct CpuPipelineOptions : PassPipelineOptions<CpuPipelineOptions> {
  PassOptions::Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Width of the target's vector registers: 128, 256 or 512 "
                     "(default 512)"),
      llvm::cl::init(512)};
  PassOptions::Option<bool> checkInputs{
      *this, "check-inputs",
      llvm::cl::desc("Report lists of blocks with an entry twice when the code "
                     "runs (default false)"),
      llvm::cl::init(false)};
};

// The levels of the CPU pipeline, one function an arrow of docs/Levels.md.

struct NvptxPipelineOptions : PassPipelineOptions<NvptxPipelineOptions> {
  PassOptions::Option<int64_t> numWarps{
      *this, "num-warps", llvm::cl::desc("Warps of a task (default 4)"),
      llvm::cl::init(4)};
  PassOptions::Option<int64_t> taskRows{
      *this, "task-rows",
      llvm::cl::desc("Rows (queries times heads of a group) of a task "
                     "(default 64)"),
      llvm::cl::init(64)};
  PassOptions::Option<int64_t> partialBytes{
      *this, "partial-bytes",
      llvm::cl::desc(
          "Scratch for partial outputs of attention key block by key "
          "block; 0: attention by tiles of queries (default 0)"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> pipelineCopies{
      *this, "pipeline-copies",
      llvm::cl::desc("Copy the next block during the work on this one "
                     "(default false)"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> maxSharedBytes{
      *this, "max-shared-bytes",
      llvm::cl::desc("Workgroup memory that a task may have, in bytes "
                     "(default 166912, what sm_80 has)"),
      llvm::cl::init(166912)};
  PassOptions::Option<bool> checkInputs{
      *this, "check-inputs",
      llvm::cl::desc("Report lists of blocks with an entry twice when the code "
                     "runs (default false)"),
      llvm::cl::init(false)};
};

/// L1 to L1.5: problems into phases.
void buildPhases(OpPassManager &pm, const CpuPipelineOptions &options);
/// L1.5 to L2: phases into parallel loops of tile ops.
void buildTiles(OpPassManager &pm);
/// L2 to L3: tensors into buffers.
void buildKernels(OpPassManager &pm);
/// L3 to LLVM: buffers into vectors, tasks and LLVM.
void buildCpuCode(OpPassManager &pm);

/// All of them: from problem ops on tensors to the LLVM dialect, with calls
/// into pisa/Runtime/CpuRuntime.h.
void buildCpuPipeline(OpPassManager &pm, const CpuPipelineOptions &options);

/// L2 to L3 on NVIDIA GPUs: buffers, placed in the memories of a GPU.
void buildGpuKernels(OpPassManager &pm, const NvptxPipelineOptions &options);
/// L3 to kernels in the LLVM dialect and a host function that allocates scratch
/// and launches them: see pisa/Target/NvptxTarget.h.
void buildGpuCode(OpPassManager &pm);
/// All of them, from problem ops on tensors.
void buildNvptxPipeline(OpPassManager &pm, const NvptxPipelineOptions &options);

/// Names of the levels in order, as pisa-verify-level knows them, of the CPU's
/// pipeline.
ArrayRef<StringRef> getLevelNames();
/// The same of the pipeline for NVIDIA GPUs.
ArrayRef<StringRef> getNvptxLevelNames();

/// Makes `pisa-cpu-pipeline` and `pisa-nvptx-pipeline` known to pass pipeline
/// parsers.
void registerPipelines();

} // namespace mlir::pisa

#endif // PISA_PIPELINES_PIPELINES_H
