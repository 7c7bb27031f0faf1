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

#endif // PISA_CONVERSION_PASSES_TD
