// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// attention into attend_tiles, which inherits the discardable attributes. Only the
// clamped lengths are made besides where q_start is given.

// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[START:[a-z0-9]+]]: tensor<1xi32>, %{{[a-z0-9]+}}: f32
// CHECK-NOT: linalg.
// CHECK: %[[LEN:.*]] = linalg.generic
// CHECK: linalg.yield
// CHECK-NOT: linalg.
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[R:.*]]:2 = pisa.attend_tiles <topk = 4>
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-SAME: q_start(%[[START]] :
// CHECK-SAME: query_offset(%[[ZERO]])
// CHECK-SAME: lse(
// CHECK-SAME: lowering_config = #pisa.lowering_config<
// CHECK-SAME: pisa.union_hint = 2.0
// CHECK-NOT: pisa.
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>)
    -> (tensor<1x4x200x32xf32>, tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>, pisa.union_hint = 2.0 : f32}
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return %0#0, %0#1 : tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
}
