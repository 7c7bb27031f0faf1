// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Rows at and past k_len are zero, and are not read.

// CHECK-LABEL: func.func @values(
// CHECK-NOT: pisa.
// CHECK: %[[LEN:.*]] = arith.index_cast
// CHECK: scf.for
// CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[LEN]]
// CHECK: scf.if %[[IN]] {
// CHECK: vector.load {{.*}} vector<16xf16>
// CHECK: arith.extf
// CHECK: } else {
// CHECK-NOT: vector.load
// CHECK: vector.store %cst
func.func @values(
    %v: memref<1x1x256x32xf16>,
    %n: memref<1xi32>,
    %block: index,
    %packed: memref<64x32xf32>) {
  pisa.pack_values ins(%v :
      memref<1x1x256x32xf16>)
    k_len(%n : memref<1xi32>)
    block(%block)
    outs(%packed : memref<64x32xf32>)
  return
}
