// RUN: pisa-opt %s -pisa-decompose -pisa-tile-and-fuse -canonicalize -cse -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// The phases of one task share its packed queries: CSE merges them.

// CHECK-LABEL: func.func @route(
// CHECK-COUNT-1: pisa.pack_queries
// CHECK-NOT: pisa.pack_queries
// CHECK-COUNT-3: pisa.score_block
// CHECK-NOT: pisa.pack_queries
func.func @route(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4, rerank = 6> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}
