// RUN: pisa-opt %s -pisa-decompose-tiles -canonicalize -cse | FileCheck %s

// With a compact config the candidates' union is gathered, and lists name places
// in it.

// CHECK-LABEL: func.func @upper(
// CHECK: scf.for
// CHECK: %[[CAND:.*]] = pisa.expand_nodes
// CHECK: %[[U:.*]]:3 = pisa.union_nodes ins(%[[CAND]] :
// CHECK-SAME: tensor<512xi32>, tensor<1xi32>, tensor<1x1x64x8xi32>
// CHECK: %[[COUNT:.*]] = tensor.extract %[[U]]#1
// CHECK: scf.for %[[B:.*]] = %c0 to
// CHECK: pisa.pack_columns {{.*}} block(%[[B]]) {{.*}} listed(%[[U]]#0 : tensor<512xi32>)
// CHECK: pisa.score_block {{.*}}%[[U]]#2
// CHECK-SAME: block(%[[B]])
// CHECK: pisa.select_topk {{.*}}ins(%[[CAND]],
// CHECK-NOT: pisa.next_block
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
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64, compact = true>}
    -> tensor<1x1x64x8xi32>
  return %0 : tensor<1x1x64x8xi32>
}
