// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// build_pyramid into pool_leaves and pool_nodes, which gets the sums of the leaves.

// CHECK-LABEL: func.func @static(
// CHECK-SAME: %[[K:.*]]: tensor<1x2x256x64xf32>
// CHECK: %[[SCRATCH:.*]] = bufferization.alloc_tensor() : tensor<1x2x7x64xf32>
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<1x2x4x64xf32>
// CHECK: %[[LEAVES:.*]] = pisa.pool_leaves <topk = 4> ins(%[[K]] :
// CHECK-SAME: outs(%[[INIT]] :
// CHECK-SAME: {lowering_config = #pisa.lowering_config<
// CHECK: %[[NODES:.*]]:2 = pisa.pool_nodes <topk = 4> ins(%[[K]], %[[LEAVES]] :
// CHECK-SAME: outs(%[[SCRATCH]],
// CHECK-SAME: {lowering_config = #pisa.lowering_config<
// CHECK: return %[[NODES]]#1
func.func @static(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x2x7x64xf32>
  return %0 : tensor<1x2x7x64xf32>
}

// Results come in the order of the inits.
// CHECK-LABEL: func.func @all_results(
// CHECK: %[[LEAVES:.*]]:3 = pisa.pool_leaves
// CHECK-SAME: atoms(
// CHECK-SAME: outlier(
// CHECK: %[[NODES:.*]]:3 = pisa.pool_nodes
// CHECK-SAME: open_sums(
// CHECK: return %[[NODES]]#1, %[[NODES]]#2, %[[LEAVES]]#1, %[[LEAVES]]#2
func.func @all_results(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %open: tensor<1x2x3x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>)
    -> (tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>) {
  %0:4 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    open_sums(%open : tensor<1x2x3x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>
}

// The sums are float32 whatever the keys are, and the leaves follow from the capacity.
// CHECK-LABEL: func.func @dynamic(
// CHECK: bufferization.alloc_tensor({{.*}}) : tensor<?x2x?x64xf32>
// CHECK: affine.apply #{{.*}}()[%{{.*}}]
// CHECK: pisa.pool_leaves
// CHECK-SAME: outs({{.*}} : tensor<?x2x?x64xf32>)
// CHECK: pisa.pool_nodes
// CHECK-SAME: tensor<?x2x?x64xf32>, tensor<?x2x?x64xbf16>
func.func @dynamic(
    %k: tensor<?x2x?x64xbf16>,
    %n: tensor<?xi32>,
    %pyr: tensor<?x2x?x64xbf16>)
    -> tensor<?x2x?x64xbf16> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<?x2x?x64xbf16>)
    k_len(%n : tensor<?xi32>)
    outs(%pyr : tensor<?x2x?x64xbf16>)
    -> tensor<?x2x?x64xbf16>
  return %0 : tensor<?x2x?x64xbf16>
}
