// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=256 | FileCheck %s
// RUN: pisa-opt %s -pisa-cpu-pipeline=vector-bits=128 | FileCheck %s

// The whole pipeline, for each width of a vector: only the LLVM dialect is left.
// attention, dynamic sizes.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK: llvm.func @attention_task
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @attention(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @attention(
    %q: tensor<?x4x?x64xbf16>,
    %k: tensor<?x2x?x64xbf16>,
    %v: tensor<?x2x?x64xbf16>,
    %idx: tensor<?x2x?x4xi32>,
    %n: tensor<?xi32>,
    %start: tensor<?xi32>,
    %scale: f32,
    %o: tensor<?x4x?x64xbf16>)
    -> tensor<?x4x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x4xi32>)
    k_len(%n : tensor<?xi32>)
    q_start(%start : tensor<?xi32>)
    scale(%scale)
    outs(%o : tensor<?x4x?x64xbf16>)
    -> tensor<?x4x?x64xbf16>
  return %0 : tensor<?x4x?x64xbf16>
}
