// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// Only a block of several queries can be clipped: query_length is Tq for
// query_block > 1, and absent otherwise.

// CHECK-LABEL: func.func @blocks(
// CHECK: %[[TQ:.*]] = arith.constant 200 : index
// CHECK: pisa.route_upper
// CHECK-SAME: query_length(%[[TQ]])
// CHECK: pisa.select_topk
// CHECK-SAME: query_length(%[[TQ]])
func.func @blocks(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x7x4xi32>)
    -> tensor<1x2x7x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4, query_block = 32> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x7x4xi32>)
    -> tensor<1x2x7x4xi32>
  return %0 : tensor<1x2x7x4xi32>
}

// CHECK-LABEL: func.func @single(
// CHECK-NOT: query_length
// CHECK: return
func.func @single(
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
