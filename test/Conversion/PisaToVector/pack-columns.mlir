// RUN: pisa-opt %s -convert-pisa-to-vector | FileCheck %s

// A block of 16 rows is transposed in registers; at the end of the sequence lanes go one
// by one, and only rows that exist are read. The bias is log2 of the keys of a row.

// CHECK-LABEL: func.func @keys(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: %[[LOG:.*]] = math.log2 %{{.*}} : vector<16xf32>
// CHECK: %[[BIAS:.*]] = arith.select %{{.*}}, %[[LOG]],
// CHECK: vector.store %[[BIAS]], %{{.*}} : memref<64xf32>, vector<16xf32>
// CHECK: %[[ALL:.*]] = vector.reduction <and>
// CHECK: scf.if %[[ALL]] {
// CHECK-COUNT-16: vector.load {{.*}} memref<1x1x?x64xbf16>, vector<16xbf16>
// CHECK: vector.transpose %{{.*}}, [1, 0]
// CHECK-COUNT-16: vector.store
// CHECK: } else {
// CHECK-NOT: vector.load
// CHECK: scf.if
// CHECK: memref.load %{{.*}} : memref<1x1x?x64xbf16>
// CHECK: arith.extf
func.func @keys(
    %src: memref<1x1x?x64xbf16>,
    %n: memref<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>) {
  pisa.pack_columns ins(%src :
      memref<1x1x?x64xbf16>)
    k_len(%n : memref<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : memref<64x64xf32>, memref<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
  return
}

// CHECK-LABEL: func.func @nodes(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: arith.divui
// CHECK: arith.remui
// CHECK: math.log2
// CHECK: vector.reduction <and>
// CHECK: vector.transpose
func.func @nodes(
    %src: memref<1x1x?x64xf32>,
    %n: memref<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>) {
  pisa.pack_columns ins(%src :
      memref<1x1x?x64xf32>)
    k_len(%n : memref<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : memref<64x64xf32>, memref<64xf32>)
    {group = 2 : i64, nodes = 32 : i64}
  return
}
