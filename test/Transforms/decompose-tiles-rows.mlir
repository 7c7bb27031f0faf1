// RUN: pisa-opt %s -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// Rows of a query block are rounded up to whole row tiles, columns to whole vectors.

// CHECK-LABEL: func.func @rows(
// CHECK: pisa.pack_queries {{.*}} outs({{.*}} : tensor<16x28x64xf32>)
// CHECK-SAME: query_block = 4 : i64
// CHECK: pisa.pack_columns {{.*}} tensor<64x32xf32>, tensor<32xf32>)
// CHECK-SAME: {group = 20 : i64, nodes = 1 : i64}
// CHECK: pisa.attend_block
// CHECK-SAME: heads = 7 : i64, row_tile = 4 : i64
func.func @rows(
    %q: tensor<1x7x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x16x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x7x64x32xf32>)
    -> tensor<1x7x64x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4, block_size = 20, query_block = 4> ins(%q, %k, %v, %idx :
      tensor<1x7x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x16x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x7x64x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>}
    -> tensor<1x7x64x32xf32>
  return %0 : tensor<1x7x64x32xf32>
}

// CHECK-LABEL: func.func @padded(
// CHECK: pisa.pack_queries {{.*}} outs({{.*}} : tensor<64x8x64xf32>)
func.func @padded(
    %q: tensor<1x7x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x7x64x32xf32>)
    -> tensor<1x7x64x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x7x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x7x64x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>}
    -> tensor<1x7x64x32xf32>
  return %0 : tensor<1x7x64x32xf32>
}
