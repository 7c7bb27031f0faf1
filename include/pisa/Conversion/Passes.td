//===- Passes.td - Conversions out of the pisa dialect -----*- tablegen -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_CONVERSION_PASSES_TD
#define PISA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPisaToVectorPass : Pass<"convert-pisa-to-vector"> {
  let summary = "Tile ops on memrefs into loops over vectors (CPU)";
  let description = [{
    Each tile op becomes scf loops, vector, arith and math ops on its buffers. The
    inner loops hold `row_tile` vectors of `column_tile` float32 in registers;
    anything wider than a register is left to LLVM to split. Float32 arithmetic
    throughout; 16-bit inputs are extended when they are packed. Scratch that
    outlives no task is `memref.alloca` at the head of the task.

    Requires bufferized tile ops (level `kernel`).
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect",
                           "math::MathDialect", "memref::MemRefDialect",
                           "scf::SCFDialect", "vector::VectorDialect"];
}

def PisaExpandMathPass : Pass<"pisa-expand-math"> {
  let summary = "Float32 exp2 and log2 into arithmetic";
  let description = [{
    `math.exp2` on f32 becomes a degree-5 polynomial with relative error below
    2e-7, exact at integers, 0 below -126, infinity from 128 on, NaN for NaN;
    `math.log2` goes through upstream's polynomial. Without it both are calls of
    the scalar C library, one per lane.

    NON-NUMERIC-PRESERVING: results differ from the C library's in the last bits,
    and results below 2^-126 are flushed to zero.
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect",
                           "vector::VectorDialect"];
}

def PisaOutlineTasksPass : Pass<"pisa-outline-tasks", "ModuleOp"> {
  let summary = "Parallel loops into task functions for the runtime's threads";
  let description = [{
    Each `scf.forall` becomes a function `void task(ptr captures, i64 begin, i64
    end)` that runs a range of its iterations in row-major order, and a call of
    `pisaParallelFor(task, captures, count)` in its place. Captured values are
    passed through a struct on the caller's stack. Fixed-size stack buffers of the
    body move to the head of the task function, so that the stack does not grow
    with the number of iterations.

    Requires bufferized loops: no shared outputs.
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect",
                           "LLVM::LLVMDialect", "scf::SCFDialect"];
  let statistics = [
    Statistic<"numTasks", "num-tasks", "Parallel loops outlined">
  ];
}

def ConvertPisaToGPUPass : Pass<"convert-pisa-to-gpu"> {
  let summary = "Tile ops of GPU tasks into the code of their warps";
  let description = [{
    Each tile op becomes what every thread of its task runs: copies and list work
    shared among threads or lanes, and matrix products of fragments. A fragment is a
    2-D vector of 16 rows that a warp holds together; softmax and log-sum-exp
    between two products are ordinary arith, math and vector ops on them.
    `pisa-distribute-fragments` gives each lane its part.

    Requires placed buffers (`pisa-assign-memory-spaces`) and barriers between the
    ops (`pisa-insert-barriers`).
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "math::MathDialect", "memref::MemRefDialect",
                           "NVVM::NVVMDialect", "nvgpu::NVGPUDialect",
                           "scf::SCFDialect", "vector::VectorDialect"];
}

def PisaDistributeFragmentsPass : Pass<"pisa-distribute-fragments"> {
  let summary = "2-D vectors of a warp into the parts of its lanes";
  let description = [{
    Fragments of 16 rows are laid out as mma.sync m16n8k16 wants its accumulator:
    lane 4 r + t holds rows r and r + 8 and, of every 8 columns, 2 t and 2 t + 1. A
    16 x N fragment becomes N / 2 elements, a 16 x 1 one two (a row each), a 1 x N
    one N / 4. 16-bit fragments become packed 32-bit registers, in the order in which
    mma.sync takes its first operand, which is that of two accumulator tiles.

    `vector.contract` becomes mma.sync; its operands in workgroup memory are read by
    ldmatrix. Reductions over columns are sums of a lane's elements and two shuffles.
    Elementwise ops keep their form. math.exp2 and math.log2 become ex2.approx and
    lg2.approx.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect",
                           "LLVM::LLVMDialect", "memref::MemRefDialect",
                           "NVVM::NVVMDialect", "nvgpu::NVGPUDialect",
                           "vector::VectorDialect"];
}

def PisaOutlineKernelsPass : Pass<"pisa-outline-kernels", "ModuleOp"> {
  let summary = "Tasks into kernels and their launches";
  let description = [{
    Each `scf.forall` becomes a `gpu.func` of one `gpu.module` and a
    `gpu.launch_func` in its place: a workgroup an iteration, numbered along the
    grid's x in row-major order (its y and z are too small for long sequences).
    Values that the body captures become arguments; constants are made again.
  }];
  let dependentDialects = ["arith::ArithDialect", "gpu::GPUDialect"];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Tasks outlined">
  ];
}

def PisaLowerAddressSpacesPass
    : Pass<"pisa-lower-address-spaces", "gpu::GPUModuleOp"> {
  let summary = "Address spaces of kernels as the numbers that PTX has";
  let description = [{
    Workgroup memory becomes address space 3, and the task's dynamic memory a global
    of no size there, which the launch sizes. Upstream's conversions to LLVM agree on
    numbers only.
  }];
  let dependentDialects = ["LLVM::LLVMDialect", "memref::MemRefDialect"];
}

#endif // PISA_CONVERSION_PASSES_TD
