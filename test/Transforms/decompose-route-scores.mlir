// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// Scores that are asked for are computed also where nothing is dropped (limit = 0);
// the cut to the re-ranked leaves is not concerned.

// CHECK-LABEL: func.func @exact(
// CHECK: pisa.score_blocks
// CHECK-SAME: limit = 0 : i64
// CHECK: %[[KEPT:.*]]:3 = pisa.select_topk
// CHECK-SAME: count(
// CHECK-SAME: kept_scores(
// CHECK: return %[[KEPT]]#0, %[[KEPT]]#1, %[[KEPT]]#2
func.func @exact(
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
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
}

// CHECK-LABEL: func.func @count_alone(
// CHECK: pisa.score_blocks
// CHECK-SAME: limit = 4 : i64
func.func @count_alone(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %cnt: tensor<1x2x200xi32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200xi32>) {
  %0:2 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>
  return %0#0, %0#1 : tensor<1x2x200x4xi32>, tensor<1x2x200xi32>
}

// CHECK-LABEL: func.func @prescore(
// CHECK: pisa.prescore_blocks
// CHECK-SAME: limit = 0 : i64
func.func @prescore(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %sc: tensor<1x2x200x4xf32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>) {
  %0:2 = pisa.route #pisa.params<topk = 4, rerank = 0> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1 : tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
}

// CHECK-LABEL: func.func @rerank(
// CHECK: pisa.prescore_blocks
// CHECK-SAME: limit = 6 : i64
// CHECK: pisa.score_blocks
// CHECK-SAME: limit = 0 : i64
func.func @rerank(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %sc: tensor<1x2x200x4xf32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>) {
  %0:2 = pisa.route #pisa.params<topk = 4, rerank = 6> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1 : tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
}
