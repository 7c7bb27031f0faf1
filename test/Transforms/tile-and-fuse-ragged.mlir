// RUN: pisa-opt %s -pisa-tile-and-fuse -canonicalize | FileCheck %s

// The last task of a sequence has what is left. A last query block may be ragged too:
// then queries are clipped at Tq on top.

// CHECK-DAG: #[[$LEFT:.*]] = affine_map<(d0) -> (-d0 + 200, 64)>
// CHECK-DAG: #[[$BLOCKS:.*]] = affine_map<(d0) -> (-d0 + 67, 21)>
// CHECK-DAG: #[[$CLIP:.*]] = affine_map<()[s0, s1] -> (s1 * -3 + 200, s0 * 3)>
// CHECK-LABEL: func.func @queries(
// CHECK: scf.forall (%{{.*}}, %[[T:.*]]) = (0, 0) to (2, 200) step (1, 64)
// CHECK: %[[N:.*]] = affine.min #[[$LEFT]](%[[T]])
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}, %[[T]], 0] [1, 2, %[[N]], 64]
// CHECK: pisa.attend_tiles
// CHECK-SAME: query_offset(%{{.*}})
// CHECK-SAME: -> tensor<1x2x?x32xf32>
func.func @queries(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}

// CHECK-LABEL: func.func @query_blocks(
// CHECK: scf.forall (%{{.*}}, %[[T:.*]]) = (0, 0) to (2, 67) step (1, 21)
// CHECK: %[[N:.*]] = affine.min #[[$BLOCKS]](%[[T]])
// CHECK: %[[FIRST:.*]] = affine.apply #{{.*}}()[%[[T]]]
// CHECK: %[[QUERIES:.*]] = affine.min #[[$CLIP]]()[%[[N]], %[[T]]]
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}, %[[FIRST]], 0] [1, 2, %[[QUERIES]], 64]
// CHECK: pisa.attend_tiles
func.func @query_blocks(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x67x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4, query_block = 3> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x67x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 63, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}
