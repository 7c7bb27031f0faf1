// RUN: pisa-opt %s -pisa-decompose -pisa-tile-and-fuse -canonicalize | FileCheck %s

// A task pools leaf_tile leaves of one kv head; the levels above are one task a head,
// not fused with it.

// CHECK-LABEL: func.func @build(
// CHECK: scf.forall (%[[H:.*]], %[[T:.*]]) = (0, 0) to (2, 20) step (1, 8)
// CHECK: %[[N:.*]] = affine.min
// CHECK: pisa.pool_leaves
// CHECK-SAME: leaf_offset(%[[T]])
// CHECK-SAME: outs({{.*}} : tensor<1x1x?x64xf32>)
// CHECK-NOT: pisa.pool_nodes
// CHECK: scf.forall (%{{.*}}) in (2)
// CHECK-NOT: pisa.pool_leaves
// CHECK: pisa.pool_nodes
// CHECK-SAME: tensor<1x1x41x64xf32>
// CHECK-NOT: scf.forall (
func.func @build(
    %k: tensor<1x2x1280x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x41x64xf32>)
    -> tensor<1x2x41x64xf32> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x1280x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x41x64xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 8, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x41x64xf32>
  return %0 : tensor<1x2x41x64xf32>
}
