// RUN: pisa-opt %s -pisa-decompose -pisa-tile-and-fuse -canonicalize -cse | FileCheck %s

// All phases of a route are in one task: nothing of them is left outside, and lists
// are those of the task. A phase with two consumers is fused once for each; CSE merges
// them.

// CHECK-LABEL: func.func @route(
// CHECK-NOT: pisa.
// CHECK: scf.forall
// CHECK: %[[LEAVES:.*]] = pisa.route_upper
// CHECK-SAME: -> tensor<1x1x?x8xi32>
// CHECK-NOT: pisa.route_upper
// CHECK: %[[PRE:.*]] = pisa.prescore_blocks {{.*}}, %[[LEAVES]] :
// CHECK: %[[CUT:.*]] = pisa.select_topk {{.*}}ins(%[[LEAVES]], %[[PRE]] :
// CHECK: %[[EXACT:.*]] = pisa.score_blocks {{.*}}, %[[CUT]] :
// CHECK: %[[KEPT:.*]] = pisa.select_topk {{.*}}ins(%[[CUT]], %[[EXACT]] :
// CHECK-SAME: -> tensor<1x1x?x4xi32>
// CHECK-NOT: pisa.
// CHECK: tensor.parallel_insert_slice %[[KEPT]] into
// CHECK-NOT: scf.forall (
// CHECK-NOT: pisa.
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
