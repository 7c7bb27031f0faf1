// RUN: pisa-opt %s -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// route_upper starts at the lowest level that shows at most W nodes, all of which
// it keeps, goes down level by level, and ends with the children of what it kept
// at level 2.

// CHECK-LABEL: func.func @upper(
// CHECK-NOT: pisa.route_upper
// CHECK: %[[Q:.*]] = pisa.pack_queries
// CHECK: %[[TOP:.*]]:2 = scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}, %[[L:.*]] = %c2)
// CHECK: arith.cmpi sgt, %[[N]], %c4
// CHECK: %[[KEPT:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x1x64x4xi32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.index 3
// CHECK: %[[ALL:.*]] = scf.for {{.*}} iter_args(%[[NODES:.*]] = %[[KEPT]]) -> (tensor<1x1x64x4xi32>)
// CHECK: %[[CAND:.*]] = pisa.expand_nodes {{.*}}ins(%[[NODES]] :
// CHECK: scf.while
// CHECK: pisa.next_block %[[CAND]] after
// CHECK: scf.condition
// CHECK: pisa.pack_columns
// CHECK-SAME: {group = 2 : i64, nodes = 32 : i64}
// CHECK: pisa.score_block ins(%[[Q]],
// CHECK-SAME: limit = 4 : i64
// CHECK: pisa.select_topk {{.*}}ins(%[[CAND]],
// CHECK-SAME: level(
// CHECK-SAME: outs(%[[NODES]] :
// CHECK: scf.yield
// CHECK: }
// CHECK: pisa.expand_nodes {{.*}}ins(%[[ALL]] :
// CHECK-SAME: level(%c2)
// CHECK-NEXT: return
func.func @upper(
    %q: tensor<1x2x64x64xf32>,
    %pyr: tensor<1x1x?x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32> {
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x2x64x64xf32>, tensor<1x1x?x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x1x64x8xi32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x1x64x8xi32>
  return %0 : tensor<1x1x64x8xi32>
}
