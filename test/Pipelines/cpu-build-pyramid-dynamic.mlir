// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// build_pyramid, dynamic sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @build_pyramid_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @build_pyramid(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @build_pyramid(
    %k: tensor<?x2x?x64xf16>,
    %n: tensor<?xi32>,
    %pyr: tensor<?x2x?x64xf16>,
    %atoms: tensor<?x2x?x4x64xf16>,
    %outlier: tensor<?x2x?xi32>)
    -> (tensor<?x2x?x64xf16>, tensor<?x2x?x4x64xf16>, tensor<?x2x?xi32>) {
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<?x2x?x64xf16>)
    k_len(%n : tensor<?xi32>)
    outs(%pyr : tensor<?x2x?x64xf16>)
    atoms(%atoms : tensor<?x2x?x4x64xf16>)
    outlier(%outlier : tensor<?x2x?xi32>)
    -> tensor<?x2x?x64xf16>, tensor<?x2x?x4x64xf16>, tensor<?x2x?xi32>
  return %0#0, %0#1, %0#2 : tensor<?x2x?x64xf16>, tensor<?x2x?x4x64xf16>, tensor<?x2x?xi32>
}
