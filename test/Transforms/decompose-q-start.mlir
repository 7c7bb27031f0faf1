// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// An absent q_start is k_len - Tq where the attention is causal, of the clamped k_len;
// otherwise there is no position.

// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<1xi32>
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] :
// CHECK: %[[C:.*]] = arith.constant 200 : index
// CHECK: %[[TQ:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK: %[[INIT:.*]] = tensor.empty({{.*}}) : tensor<1xi32>
// CHECK: %[[START:.*]] = linalg.generic {{.*}} ins(%[[LEN]] : {{.*}}) outs(%[[INIT]] :
// CHECK: arith.subi %{{.*}}, %[[TQ]] : i32
// CHECK: pisa.attend_tiles
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-SAME: q_start(%[[START]] :
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}

// CHECK-LABEL: func.func @route_dynamic(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x4x?x64xf32>
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<?xi32>
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] :
// CHECK: %[[DIM:.*]] = tensor.dim %[[Q]], %c2
// CHECK: %[[TQ:.*]] = arith.index_cast %[[DIM]] : index to i32
// CHECK: %[[INIT:.*]] = tensor.empty({{.*}}) : tensor<?xi32>
// CHECK: %[[START:.*]] = linalg.generic {{.*}} ins(%[[LEN]] : {{.*}}) outs(%[[INIT]] :
// CHECK: arith.subi %{{.*}}, %[[TQ]] : i32
// CHECK: pisa.route_upper
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-SAME: q_start(%[[START]] :
// CHECK: pisa.select_topk
// CHECK-SAME: q_start(%[[START]] :
func.func @route_dynamic(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %pyr: tensor<?x2x?x64xf32>,
    %n: tensor<?xi32>,
    %scale: f32,
    %idx: tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
    k_len(%n : tensor<?xi32>)
    scale(%scale)
    outs(%idx : tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32>
  return %0 : tensor<?x2x?x4xi32>
}

// CHECK-LABEL: func.func @not_causal(
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK-NOT: arith.subi
// CHECK: pisa.attend_tiles
// CHECK-NOT: q_start
// CHECK: return
func.func @not_causal(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4, causal = false> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}
