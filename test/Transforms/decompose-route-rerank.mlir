// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// The pre-score: it decides alone (rerank = 0), or cuts the candidates to those that
// get the exact score.

// CHECK-LABEL: func.func @none(
// CHECK: %[[LEAVES:.*]] = pisa.route_upper
// CHECK: %[[PRE:.*]] = pisa.prescore_blocks {{.*}}, %[[LEAVES]] :
// CHECK-SAME: limit = 4 : i64
// CHECK-NOT: pisa.score_blocks
// CHECK: pisa.select_topk {{.*}}ins(%[[LEAVES]], %[[PRE]] :
// CHECK-NOT: pisa.
func.func @none(
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
  %0 = pisa.route #pisa.params<topk = 4, rerank = 0> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}

// CHECK-LABEL: func.func @some(
// CHECK: %[[LEAVES:.*]] = pisa.route_upper
// CHECK: %[[PRE:.*]] = pisa.prescore_blocks {{.*}}, %[[LEAVES]] :
// CHECK-SAME: limit = 6 : i64
// CHECK: %[[CUT:.*]] = pisa.select_topk {{.*}}ins(%[[LEAVES]], %[[PRE]] :
// CHECK-SAME: -> tensor<1x2x200x6xi32>
// CHECK: %[[EXACT:.*]] = pisa.score_blocks {{.*}}, %[[CUT]] :
// CHECK-SAME: limit = 4 : i64
// CHECK-SAME: -> tensor<1x2x200x6xf32>
// CHECK: %[[KEPT:.*]] = pisa.select_topk {{.*}}ins(%[[CUT]], %[[EXACT]] :
// CHECK: return %[[KEPT]]
func.func @some(
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
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}
