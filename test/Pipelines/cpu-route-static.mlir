// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// route, static sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @route_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @route(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @route(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %cnt: tensor<1x2x200xi32>,
    %sc: tensor<1x2x200x4xf32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
}
