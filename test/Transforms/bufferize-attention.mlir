// RUN: pisa-opt %s -pisa-set-lowering-config -pisa-decompose -canonicalize -cse -pisa-tile-and-fuse -canonicalize -cse -pisa-decompose-tiles -canonicalize -cse \
// RUN:   -pisa-bufferize -canonicalize -cse -canonicalize > %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=ALLOC
// RUN: FileCheck %s --input-file=%t --check-prefix=NOT

// Inputs and outputs are used in place: the clamped lengths are the only buffer that
// all tasks share, and a task allocates the packed queries, the state
// (acc, max, sum) and one packed block (columns, bias, values), and copies nothing.

// NOT-NOT: memref.copy
// NOT-NOT: bufferization.
// NOT-NOT: tensor
// CHECK-LABEL: func.func @attention(
// CHECK: memref.alloc() {{.*}} : memref<1xi32>
// CHECK-NOT: memref.alloc(
// CHECK: scf.forall
// CHECK-NOT: shared_outs
// ALLOC: scf.forall
// ALLOC-COUNT-7: memref.alloc(
// ALLOC-NOT: memref.alloc(
// CHECK: %[[Q:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x2x64xf32>
// CHECK: pisa.pack_queries {{.*}} outs(%[[Q]] :
// CHECK: scf.while
// CHECK-NOT: memref.alloc(
// CHECK: pisa.attend_block {{.*}}ins(%[[Q]],
// CHECK: pisa.finish_attention {{.*}} outs(%{{.*}} : memref<1x2x?x32xf32, strided<[?, ?, ?, 1], offset: ?>>)
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}
