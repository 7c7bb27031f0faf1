// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// A head dimension that is no multiple of 16 ends in a narrower vector.

// CHECK-LABEL: func.func @queries(
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK-NOT: vector.load
func.func @queries(
    %q: memref<1x2x64x24xf32>,
    %scale: f32,
    %packed: memref<64x2x24xf32>) {
  pisa.pack_queries ins(%q :
      memref<1x2x64x24xf32>)
    scale(%scale)
    outs(%packed : memref<64x2x24xf32>)
    {query_block = 1 : i64}
  return
}

// CHECK-LABEL: func.func @columns(
// CHECK-COUNT-16: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-16: vector.load {{.*}} vector<8xf32>
func.func @columns(
    %src: memref<1x1x256x24xf32>,
    %n: memref<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: memref<24x64xf32>,
    %bias: memref<64xf32>) {
  pisa.pack_columns ins(%src :
      memref<1x1x256x24xf32>)
    k_len(%n : memref<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : memref<24x64xf32>, memref<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
  return
}
