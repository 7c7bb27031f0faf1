// RUN: pisa-opt %s -pisa-tile-and-fuse -canonicalize | FileCheck %s

// Dynamic batch and lengths: one sequence a task, positions counted from its first
// query.

// CHECK: #[[$LEFT:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
// CHECK-LABEL: func.func @attend(
// CHECK-SAME: %[[LEN:[a-z0-9]+]]: tensor<?xi32>, %[[START:[a-z0-9]+]]: tensor<?xi32>, %[[FIRST:[a-z0-9]+]]: index
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[T:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[TQ:.*]]) step (1, 1, 64)
// CHECK: %[[N:.*]] = affine.min #[[$LEFT]](%[[T]])[%[[TQ]]]
// CHECK: tensor.extract_slice %{{.*}}[%[[B]], %{{.*}}, %[[T]], 0] [1, 2, %[[N]], 64]
// CHECK: %[[LENS:.*]] = tensor.extract_slice %[[LEN]][%[[B]]] [1] [1]
// CHECK: %[[STARTS:.*]] = tensor.extract_slice %[[START]][%[[B]]] [1] [1]
// CHECK: %[[OFFSET:.*]] = affine.apply #{{.*}}()[%[[FIRST]], %[[T]]]
// CHECK: pisa.attend_tiles
// CHECK-SAME: k_len(%[[LENS]] : tensor<1xi32>) q_start(%[[STARTS]] : tensor<1xi32>) query_offset(%[[OFFSET]])
func.func @attend(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %v: tensor<?x2x?x32xf32>,
    %idx: tensor<?x2x?x4xi32>,
    %n: tensor<?xi32>,
    %start: tensor<?xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<?x4x?x32xf32>)
    -> tensor<?x4x?x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x4xi32>)
    k_len(%n : tensor<?xi32>)
    q_start(%start : tensor<?xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<?x4x?x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<?x4x?x32xf32>
  return %0 : tensor<?x4x?x32xf32>
}
