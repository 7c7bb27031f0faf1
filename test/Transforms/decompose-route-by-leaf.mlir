// RUN: pisa-opt %s -pisa-decompose -canonicalize -cse | FileCheck %s

// Leaves are scored by the inverted list. Forced ones are not on it, unless their
// scores are wanted.

// CHECK-LABEL: func.func @lists(
// CHECK: %[[LEAVES:.*]] = pisa.route_upper
// CHECK: pisa.count_entries {{.*}}ins(%[[LEAVES]] : {{.*}} k_len({{.*}} q_start(
// CHECK: pisa.place_entries
// CHECK: pisa.list_entries {{.*}}ins(%[[LEAVES]] : {{.*}} k_len({{.*}} q_start(
// CHECK: %[[SCORES:.*]] = pisa.score_entries
// CHECK: pisa.select_topk {{.*}}ins(%[[LEAVES]], %[[SCORES]] :
func.func @lists(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
    %p: tensor<1x2x7x64xbf16>, %n: tensor<1xi32>, %start: tensor<1xi32>, %s: f32,
    %i: tensor<1x2x256x4xi32>) -> tensor<1x2x256x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %p : tensor<1x4x256x64xbf16>,
         tensor<1x2x256x64xbf16>, tensor<1x2x7x64xbf16>) k_len(%n : tensor<1xi32>)
         q_start(%start : tensor<1xi32>) scale(%s)
         outs(%i : tensor<1x2x256x4xi32>)
         {lowering_config = #pisa.lowering_config<query_tile = 32, leaf_tile = 8, row_tile = 2,
            column_tile = 64, gather = 128, operand_type = bf16>}
         -> tensor<1x2x256x4xi32>
  return %0 : tensor<1x2x256x4xi32>
}

// CHECK-LABEL: func.func @scores(
// CHECK: pisa.count_entries
// CHECK-NOT: k_len
// CHECK-SAME: limit = 0
func.func @scores(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>,
    %p: tensor<1x2x7x64xbf16>, %n: tensor<1xi32>, %start: tensor<1xi32>, %s: f32,
    %i: tensor<1x2x256x4xi32>,
    %w: tensor<1x2x256x4xf32>) -> tensor<1x2x256x4xi32> {
  %0:2 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %p : tensor<1x4x256x64xbf16>,
         tensor<1x2x256x64xbf16>, tensor<1x2x7x64xbf16>) k_len(%n : tensor<1xi32>)
         q_start(%start : tensor<1xi32>) scale(%s)
         outs(%i : tensor<1x2x256x4xi32>) scores(%w : tensor<1x2x256x4xf32>)
         {lowering_config = #pisa.lowering_config<query_tile = 32, leaf_tile = 8, row_tile = 2,
            column_tile = 64, gather = 128, operand_type = bf16>}
         -> tensor<1x2x256x4xi32>, tensor<1x2x256x4xf32>
  return %0#0 : tensor<1x2x256x4xi32>
}
