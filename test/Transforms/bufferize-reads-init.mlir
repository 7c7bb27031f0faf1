// RUN: pisa-opt %s -pisa-bufferize | FileCheck %s

// An init that is read is copied where its old value is still needed; one that is
// overwritten gets a fresh buffer and no copy.

// CHECK-LABEL: func.func @read(
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK: memref.copy %{{.*}}, %[[NEW]]
// CHECK: pisa.score_block
// CHECK-SAME: outs(%[[NEW]] :
func.func @read(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>)
    -> (tensor<1x1x64x8xf32>, tensor<1x1x64x8xf32>) {
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return %0, %scores : tensor<1x1x64x8xf32>, tensor<1x1x64x8xf32>
}

// CHECK-LABEL: func.func @overwritten(
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK-NOT: memref.copy
// CHECK: pisa.pack_values
// CHECK-SAME: outs(%[[NEW]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @overwritten(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return %0, %packed : tensor<64x32xf32>, tensor<64x32xf32>
}
