// RUN: pisa-opt %s -pisa-decompose -pisa-tile-and-fuse -canonicalize | FileCheck %s

// Count and scores are results of the same task as the indices.

// CHECK-LABEL: func.func @route(
// CHECK: %[[R:.*]]:3 = scf.forall
// CHECK: %[[KEPT:.*]]:3 = pisa.select_topk
// CHECK: tensor.parallel_insert_slice %[[KEPT]]#0 into
// CHECK: tensor.parallel_insert_slice %[[KEPT]]#1 into
// CHECK: tensor.parallel_insert_slice %[[KEPT]]#2 into
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @route(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %cnt: tensor<1x2x200xi32>,
    %sc: tensor<1x2x200x4xf32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
}
