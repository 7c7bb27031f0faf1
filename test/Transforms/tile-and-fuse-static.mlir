// RUN: pisa-opt %s -pisa-tile-and-fuse -canonicalize -cse | FileCheck %s

// Sizes that divide: a task is one kv head and 64 queries, all sizes static.

// CHECK-LABEL: func.func @attend(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<1x4x128x64xf32>
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<1x2x256x64xf32>
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<1x4x128x32xf32>)
// CHECK-NOT: pisa.
// CHECK: scf.forall (%[[H:.*]], %[[T:.*]]) = (0, 0) to (2, 128) step (1, 64)
// CHECK-SAME: shared_outs(%[[OUT:.*]] = %[[INIT]])
// CHECK-NOT: affine.min
// CHECK: %[[HEAD:.*]] = affine.apply #{{.*}}()[%[[H]]]
// CHECK: %[[QS:.*]] = tensor.extract_slice %[[Q]][0, %[[HEAD]], %[[T]], 0] [1, 2, 64, 64]
// CHECK: %[[KS:.*]] = tensor.extract_slice %[[K]][0, %[[H]], 0, 0] [1, 1, 256, 64]
// CHECK: tensor.extract_slice %{{.*}}[0, %[[H]], %[[T]], 0] [1, 1, 64, 4]
// CHECK: tensor.extract_slice %[[OUT]][0, %[[HEAD]], %[[T]], 0] [1, 2, 64, 32]
// CHECK: %[[R:.*]] = pisa.attend_tiles <topk = 4> ins(%[[QS]], %[[KS]],
// CHECK-SAME: lowering_config
// CHECK-SAME: -> tensor<1x2x64x32xf32>
// CHECK: tensor.parallel_insert_slice %[[R]] into %[[OUT]][0, %[[HEAD]], %[[T]], 0] [1, 2, 64, 32]
// CHECK-NOT: pisa.
func.func @attend(
    %q: tensor<1x4x128x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x128x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x128x32xf32>)
    -> tensor<1x4x128x32xf32> {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x128x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x128x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x128x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x4x128x32xf32>
  return %0 : tensor<1x4x128x32xf32>
}
