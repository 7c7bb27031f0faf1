// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Children that start after the last position of the block are left out, the rest of
// the list is -1.

// CHECK-LABEL: func.func @expand(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<1x1x64x4xi32>
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK: memref.store %{{.*}} : memref<1x1x64x8xi32>
// CHECK: scf.for
// CHECK: memref.store %c-1_i32
func.func @expand(
    %nodes: memref<1x1x64x4xi32>,
    %n: memref<1xi32>,
    %start: memref<1xi32>,
    %first: index,
    %level: index,
    %children: memref<1x1x64x8xi32>) {
  pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      memref<1x1x64x4xi32>)
    k_len(%n : memref<1xi32>)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : memref<1x1x64x8xi32>)
  return
}
