// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// No sort: an entry is kept if fewer than K come before it, counted in vectors. Forced
// entries have the highest key. A list that fits is copied.

// CHECK-LABEL: func.func @select(
// CHECK-NOT: pisa.
// CHECK: %[[KEYS:.*]] = memref.alloca() {{.*}}: memref<16xi32>
// CHECK: scf.for
// CHECK: scf.if
// CHECK: } else {
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.cmpf uno
// CHECK: memref.store %{{.*}}, %[[KEYS]]
// CHECK: vector.load %[[KEYS]]
// CHECK: vector.reduction <add>
// CHECK: memref.store %{{.*}} : memref<1x1x64x4xi32>
// CHECK: memref.store %{{.*}} : memref<1x1x64x4xf32>
// CHECK: memref.store %c-1_i32
// CHECK: memref.store %{{.*}} : memref<1x1x64xi32>
func.func @select(
    %nodes: memref<1x1x64x8xi32>,
    %scores: memref<1x1x64x8xf32>,
    %n: memref<1xi32>,
    %start: memref<1xi32>,
    %first: index,
    %kept: memref<1x1x64x4xi32>,
    %count: memref<1x1x64xi32>,
    %ks: memref<1x1x64x4xf32>) {
  pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      memref<1x1x64x8xi32>, memref<1x1x64x8xf32>)
    k_len(%n : memref<1xi32>)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    outs(%kept : memref<1x1x64x4xi32>)
    count(%count : memref<1x1x64xi32>)
    kept_scores(%ks : memref<1x1x64x4xf32>)
  return
}
