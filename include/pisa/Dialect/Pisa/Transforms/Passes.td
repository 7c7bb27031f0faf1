//===- Passes.td - Passes on the pisa dialect --------------*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TRANSFORMS_PASSES_TD
#define PISA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PisaSetLoweringConfigPass : Pass<"pisa-set-lowering-config"> {
  let summary = "Choose how each problem is tiled";
  let description = [{
    The only pass that holds policy: it writes `lowering_config` on each problem op
    that has none, by shape and target, and changes nothing else. An op that
    carries one keeps it.

    On the CPU the registers of the inner loops bound `row_tile` x `column_tile`: 24
    accumulators of 512 bits, or 12 of 256 bits and below.

    Before:
    ```mlir
    %0 = pisa.attention #pisa.params<topk = 4> ins(...)
    ```
    After:
    ```mlir
    %0 = pisa.attention #pisa.params<topk = 4> ins(...) {lowering_config =
      #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>}
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "cpu or nvptx">,
    Option<"vectorBits", "vector-bits", "int64_t", "512",
           "Width of the CPU's vector registers: 128, 256 or 512">,
    Option<"taskRows", "task-rows", "int64_t", "64",
           "Rows (queries times heads of a group) of a task on NVPTX">,
    Option<"partialBytes", "partial-bytes", "int64_t", "0",
           "Scratch for partial outputs of attention key block by key block on "
           "NVPTX; 0: attention by tiles of queries">,
  ];
}

def PisaDecomposePass : Pass<"pisa-decompose"> {
  let summary = "Problem ops into phases";
  let description = [{
    `build_pyramid` becomes `pool_leaves` and `pool_nodes`; `route` becomes
    `route_upper`, `prescore_blocks` and `score_blocks` as `rerank` asks, and
    `select_topk`; `attention` becomes `attend_tiles` or, with a `chunk` in its
    config, a loop over chunks of queries that invert their lists, attend block by
    block and merge. Phases inherit the
    discardable attributes of their problem. An absent `q_start` becomes k_len - Tq
    where the attention is causal.

    Refuses packed sequences and page tables.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect",
                           "bufferization::BufferizationDialect",
                           "linalg::LinalgDialect", "scf::SCFDialect",
                           "tensor::TensorDialect"];
  let options = [
    Option<"checkInputs", "check-inputs", "bool", "false",
           "Report lists of blocks with an entry twice when the code runs">,
  ];
  let statistics = [
    Statistic<"numProblems", "num-problems", "Problem ops decomposed">
  ];
}

def PisaTileAndFusePass : Pass<"pisa-tile-and-fuse"> {
  let summary = "Phases into parallel loops over tiles";
  let description = [{
    Tiles phases into `scf.forall` loops over their iteration spaces, one sequence
    and kv head and `query_tile` queries (or `leaf_tile` leaves) at a time. A phase
    whose lists or scores are consumed by `score_blocks`, `prescore_blocks` or
    `select_topk` is fused into the loop of its consumer instead, so that lists and
    scores of candidates exist for one tile at a time: memory stays linear in the
    pyramid. Loops of tasks that multiply matrices are mapped to blocks, which keeps
    one of a single iteration from folding away.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect",
                           "gpu::GPUDialect", "scf::SCFDialect",
                           "tensor::TensorDialect"];
  let statistics = [
    Statistic<"numTiled", "num-tiled", "Phases tiled">,
    Statistic<"numFused", "num-fused", "Producer phases fused">
  ];
}

def PisaDecomposeTilesPass : Pass<"pisa-decompose-tiles"> {
  let summary = "Phases of one task into tile ops";
  let description = [{
    Inside a task, `route_upper` becomes a loop over levels, and each phase that
    reads blocks a loop over the union of its lists (`next_block`) whose body packs
    one block and works on it. Consumes and deletes `lowering_config`.
  }];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect",
                           "scf::SCFDialect", "tensor::TensorDialect"];
}

def PisaBufferizePass : Pass<"pisa-bufferize", "ModuleOp"> {
  let summary = "One-shot bufferization with unit-stride function arguments";
  let description = [{
    Upstream's one-shot bufferization of functions, with two choices that its pass
    has no option for: tensor arguments become memrefs of any strides and offset but
    unit stride in the last dimension (which vector loads rely on), and a result
    that is one of the function's own arguments is dropped.
  }];
  let dependentDialects = ["bufferization::BufferizationDialect",
                           "memref::MemRefDialect"];
}

def PisaExpandChecksPass : Pass<"pisa-expand-checks"> {
  let summary = "Checks of inputs into tasks and a report (GPU)";
  let description = [{
    `pisa.check_indices` becomes a status in scratch memory, tasks of
    `pisa.check_rows` over the lists that share it, and `pisa.await_check`, where the
    host waits and reports. Requires buffers.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect",
                           "gpu::GPUDialect", "linalg::LinalgDialect",
                           "memref::MemRefDialect", "scf::SCFDialect"];
}

def PisaWrapHostOpsPass : Pass<"pisa-wrap-host-ops"> {
  let summary = "Work on buffers between tasks into tasks of its own (GPU)";
  let description = [{
    An op on buffers outside every `scf.forall` (the clamping of lengths, the fill
    of an output without keys) moves into one: a task for each row of its first
    dimension. Afterwards the function around the tasks computes sizes and allocates
    scratch, and touches no buffer: all of it runs on the host without the data.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "memref::MemRefDialect", "scf::SCFDialect"];
}

def PisaAssignMemorySpacesPass : Pass<"pisa-assign-memory-spaces"> {
  let summary = "Place the buffers of a task in a GPU's memories";
  let description = [{
    Accumulators of attention become private: they live in registers as fragments.
    All other buffers of a task become views of its workgroup memory, of static
    size; buffers that are not in use at the same time share bytes. Matrix operands
    get padded rows, so that ldmatrix has no bank conflicts, and columns are stored
    one after the other. Tile ops that need scratch get its byte offset as
    `pisa.scratch`, and the task the number of its warps as `pisa.num_warps` and of
    these bytes as `pisa.shared_bytes`.

    Fails if a task needs more than `max-shared-bytes`.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "memref::MemRefDialect"];
  let options = [
    Option<"numWarps", "num-warps", "int64_t", "4", "Warps of a task">,
    Option<"maxSharedBytes", "max-shared-bytes", "int64_t", "232448",
           "Workgroup memory that a task may have, in bytes">,
  ];
}

def PisaPipelineCopiesPass : Pass<"pisa-pipeline-copies"> {
  let summary = "Copy a loop's next block while it works on this one";
  let description = [{
    A loop over a union of blocks (`next_block`) whose body packs a block and works
    on it gets a second place for what it packs. It finds and copies the first block
    before it starts; then each iteration waits for its block, which is the only
    barrier, starts the copy of the next one to the other place, and works.

    Leaves a loop alone whose second places do not fit in `max-shared-bytes`.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "memref::MemRefDialect", "NVVM::NVVMDialect",
                           "scf::SCFDialect"];
  let options = [
    Option<"maxSharedBytes", "max-shared-bytes", "int64_t", "232448",
           "Workgroup memory that a task may have, in bytes">,
  ];
  let statistics = [
    Statistic<"numPipelined", "num-pipelined", "Loops pipelined">
  ];
}

def PisaInsertBarriersPass : Pass<"pisa-insert-barriers"> {
  let summary = "Barriers between tile ops that share workgroup memory";
  let description = [{
    Inserts `gpu.barrier` before a tile op that reads what another wrote since the
    last barrier, or writes what another read or wrote; the ops of a loop's body
    also follow themselves. Asynchronous copies are waited for at the barrier.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numBarriers", "num-barriers", "Barriers inserted">
  ];
}

def PisaVerifyLevelPass : Pass<"pisa-verify-level"> {
  let summary = "Check that a module is at one level of the pipeline";
  let description = [{
    Fails on the first op that does not belong to `level`: `problem` (L1), `phase`
    (L1.5), `tile` (L2), `kernel` (L3) or `llvm`; on GPUs `gpu-kernel` (L3 in the
    memories of a GPU) and `plan` (kernels in the LLVM dialect, and a host function
    that computes sizes, allocates scratch and launches). Runs between levels in every
    pipeline. Changes nothing.
  }];
  let options = [
    Option<"level", "level", "std::string", "",
           "problem, phase, tile, kernel, gpu-kernel, plan or llvm">
  ];
}

#endif // PISA_TRANSFORMS_PASSES_TD
