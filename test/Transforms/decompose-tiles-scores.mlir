// RUN: pisa-opt %s -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// Scores visit the union of the lists of a task once, in ascending order, and pack one
// block at a time.

// CHECK-LABEL: func.func @exact(
// CHECK-SAME: %[[LEAVES:[a-z0-9]+]]: tensor<1x1x64x8xi32>
// CHECK: %[[Q:.*]] = pisa.pack_queries
// CHECK: %[[R:.*]]:2 = scf.while (%[[AFTER:.*]] = %c-1, %[[S:.*]] = %{{.*}})
// CHECK: %[[NEXT:.*]] = pisa.next_block %[[LEAVES]] after %[[AFTER]] limit %[[LIMIT:.*]] {divisor = 1 : i64}
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[LIMIT]]
// CHECK: scf.condition(%[[MORE]]) %[[NEXT]], %[[S]]
// CHECK: ^bb0(%[[B:.*]]: index, %[[S2:.*]]: tensor
// CHECK: %[[C:.*]]:2 = pisa.pack_columns
// CHECK-SAME: block(%[[B]])
// CHECK-SAME: nodes = 1 : i64
// CHECK: pisa.score_block ins(%[[Q]], %[[C]]#0, %[[C]]#1, %[[LEAVES]] :
// CHECK-SAME: outs(%[[S2]] :
// CHECK-SAME: limit = 4 : i64
// CHECK: return %[[R]]#1
func.func @exact(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %leaves: tensor<1x1x64x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x1x64x8xf32>)
    -> tensor<1x1x64x8xf32> {
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x64x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x1x64x8xf32>)
    {limit = 4 : i64, lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x1x64x8xf32>
  return %0 : tensor<1x1x64x8xf32>
}

// CHECK-LABEL: func.func @prescore(
// CHECK-SAME: %[[LEAVES:[a-z0-9]+]]: tensor<1x1x64x8xi32>
// CHECK: %[[Q:.*]] = pisa.pack_queries
// CHECK: %[[R:.*]]:2 = scf.while (%[[AFTER:.*]] = %c-1, %[[S:.*]] = %{{.*}})
// CHECK: %[[NEXT:.*]] = pisa.next_block %[[LEAVES]] after %[[AFTER]] limit %[[LIMIT:.*]] {divisor = 16 : i64}
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[LIMIT]]
// CHECK: scf.condition(%[[MORE]]) %[[NEXT]], %[[S]]
// CHECK: ^bb0(%[[B:.*]]: index, %[[S2:.*]]: tensor
// CHECK: %[[C:.*]]:2 = pisa.pack_atoms
// CHECK-SAME: block(%[[B]])
// CHECK-SAME: nodes = 16 : i64
// CHECK: pisa.score_block ins(%[[Q]], %[[C]]#0, %[[C]]#1, %[[LEAVES]] :
// CHECK-SAME: outs(%[[S2]] :
// CHECK-SAME: limit = 4 : i64
// CHECK: return %[[R]]#1
func.func @prescore(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x4x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %leaves: tensor<1x1x64x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x1x64x8xf32>)
    -> tensor<1x1x64x8xf32> {
  %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4> ins(%q, %k, %atoms, %outlier, %leaves :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>, tensor<1x1x64x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x1x64x8xf32>)
    {limit = 4 : i64, lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x1x64x8xf32>
  return %0 : tensor<1x1x64x8xf32>
}
