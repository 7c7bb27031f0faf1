// RUN: pisa-opt %s -pisa-decompose-tiles | FileCheck %s

// The config has done its work and goes, also from phases that are tile ops
// themselves; other attributes stay.

// CHECK-NOT: lowering_config
// CHECK: pisa.pool_leaves
// CHECK-SAME: {pisa.union_hint = 1.0
// CHECK-NOT: lowering_config
func.func @pool(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>)
    -> tensor<1x2x4x64xf32> {
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>, pisa.union_hint = 1.0 : f32}
    -> tensor<1x2x4x64xf32>
  return %0 : tensor<1x2x4x64xf32>
}

// CHECK-LABEL: func.func @attend(
// CHECK-NOT: lowering_config
// CHECK: return
func.func @attend(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x2x64x32xf32>)
    -> tensor<1x2x64x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x2x64x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x64x32xf32>
  return %0 : tensor<1x2x64x32xf32>
}
