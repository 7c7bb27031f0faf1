// RUN: pisa-opt %s -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// attend_tiles carries its state through a loop over blocks, from (0, -inf, 0), and
// normalises it once. Causal: no block after the last query is visited.

// CHECK-LABEL: func.func @causal(
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[Q:.*]] = pisa.pack_queries
// CHECK: %[[LIMIT:.*]] = arith.minsi
// CHECK: linalg.fill ins(%[[INF]] :
// CHECK: %[[R:.*]]:4 = scf.while
// CHECK: pisa.next_block %[[IDX:.*]] after %{{.*}} limit %[[LIMIT]] {divisor = 1 : i64}
// CHECK: ^bb0(%[[B:.*]]: index, %[[ACC:.*]]: tensor<64x2x32xf32>, %[[MAX:.*]]: tensor<64x2xf32>, %[[SUM:.*]]: tensor<64x2xf32>):
// CHECK: %[[K:.*]]:2 = pisa.pack_columns
// CHECK: %[[V:.*]] = pisa.pack_values
// CHECK: %[[N:.*]]:3 = pisa.attend_block <topk = 4> ins(%[[Q]], %[[K]]#0, %[[K]]#1, %[[V]], %[[IDX]] :
// CHECK-SAME: outs(%[[ACC]], %[[MAX]], %[[SUM]] :
// CHECK: scf.yield %[[B]], %[[N]]#0, %[[N]]#1, %[[N]]#2
// CHECK: %[[O:.*]] = pisa.finish_attention ins(%[[R]]#1, %[[R]]#2, %[[R]]#3 :
// CHECK-NEXT: return %[[O]]
func.func @causal(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x2x64x32xf32>)
    -> tensor<1x2x64x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x2x64x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x64x32xf32>
  return %0 : tensor<1x2x64x32xf32>
}

// CHECK-LABEL: func.func @not_causal(
// CHECK-NOT: arith.minsi
// CHECK: pisa.next_block
// CHECK: pisa.finish_attention
// CHECK-SAME: lse(
func.func @not_causal(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x2x64x32xf32>,
    %lse: tensor<1x2x64xf32>)
    -> (tensor<1x2x64x32xf32>, tensor<1x2x64xf32>) {
  %0:2 = pisa.attend_tiles #pisa.params<topk = 4, causal = false> ins(%q, %k, %v, %idx :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x2x64x32xf32>)
    lse(%lse : tensor<1x2x64xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x64x32xf32>, tensor<1x2x64xf32>
  return %0#0, %0#1 : tensor<1x2x64x32xf32>, tensor<1x2x64xf32>
}
