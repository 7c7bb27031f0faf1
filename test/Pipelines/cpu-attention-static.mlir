// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// attention, static sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @attention_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @attention(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>)
    -> (tensor<1x4x200x32xf32>, tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return %0#0, %0#1 : tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
}
