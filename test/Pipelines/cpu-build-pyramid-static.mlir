// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// build_pyramid, static sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @build_pyramid_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @build_pyramid(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @build_pyramid(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %open: tensor<1x2x3x64xf32>)
    -> (tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>) {
  %0:2 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    open_sums(%open : tensor<1x2x3x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>
  return %0#0, %0#1 : tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>
}
