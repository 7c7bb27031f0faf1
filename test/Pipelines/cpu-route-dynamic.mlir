// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// route, dynamic sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @route_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @route(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @route(
    %q: tensor<?x4x?x64xbf16>,
    %k: tensor<?x2x?x64xbf16>,
    %pyr: tensor<?x2x?x64xbf16>,
    %atoms: tensor<?x2x?x4x64xbf16>,
    %outlier: tensor<?x2x?xi32>,
    %n: tensor<?xi32>,
    %scale: f32,
    %idx: tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4, beam = 8, rerank = 6, query_block = 2> ins(%q, %k, %pyr :
      tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    atoms(%atoms, %outlier : tensor<?x2x?x4x64xbf16>, tensor<?x2x?xi32>)
    k_len(%n : tensor<?xi32>)
    scale(%scale)
    outs(%idx : tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32>
  return %0 : tensor<?x2x?x4xi32>
}
