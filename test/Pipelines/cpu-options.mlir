// RUN: pisa-opt %s --pass-pipeline='builtin.module(pisa-cpu-pipeline)' | FileCheck %s
// RUN: pisa-opt %s --pass-pipeline='builtin.module(pisa-cpu-pipeline{vector-bits=256})' | FileCheck %s
// RUN: pisa-opt %s --pass-pipeline='builtin.module(pisa-cpu-pipeline{vector-bits=128 check-inputs=true})' | FileCheck %s --check-prefixes=CHECK,INPUTS
// RUN: pisa-opt %s '-pisa-cpu-pipeline=check-inputs vector-bits=512' | FileCheck %s --check-prefixes=CHECK,INPUTS
// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s --check-prefix=OFF

// The options of the pipeline, in textual and in flag form. Inputs are checked only if
// that is asked for.

// INPUTS: llvm.func @pisaReportDuplicateBlock(i64, i64, i64, i64)
// CHECK: llvm.func @attention(
// INPUTS: llvm.call @pisaReportDuplicateBlock(
// CHECK: llvm.call @pisaParallelFor(
// OFF-NOT: pisaReportDuplicateBlock
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}
