// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// route into the search, exact scores and the selection. No re-rank: no pre-score.

// CHECK-LABEL: func.func @exact(
// CHECK-NOT: pisa.prescore_blocks
// CHECK: %[[LEAVES:.*]] = pisa.route_upper <topk = 4>
// CHECK-SAME: capacity_leaves(%c4)
// CHECK-SAME: -> tensor<1x2x200x8xi32>
// CHECK-NOT: pisa.prescore_blocks
// CHECK: %[[SCORES:.*]] = pisa.score_blocks {{.*}}ins(%{{.*}}, %{{.*}}, %[[LEAVES]] :
// CHECK-SAME: limit = 4 : i64
// CHECK: %[[KEPT:.*]] = pisa.select_topk {{.*}}ins(%[[LEAVES]], %[[SCORES]] :
// CHECK-NOT: level(
// CHECK-NOT: pisa.
// CHECK: return %[[KEPT]]
func.func @exact(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}

// The beam decides how many candidates there are.
// CHECK-LABEL: func.func @beam(
// CHECK: pisa.route_upper
// CHECK-SAME: -> tensor<1x2x200x30xi32>
func.func @beam(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4, fanout = 3, beam = 10> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}
