// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Row tiles of dot products, then a log-sum-exp in base 2: across columns for one node
// (leaf), across children for many. A list that is not cut is skipped, and an op whose
// lists all are is dropped.

// CHECK-LABEL: func.func @leaf(
// CHECK-NOT: pisa.
// CHECK: memref.alloca() {{.*}}: memref<2x64xf32>
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-2: math.fma {{.*}} vector<64xf32>
// CHECK: vector.reduction <maximumf>
// CHECK: math.exp2 %{{.*}} : vector<64xf32>
// CHECK: vector.reduction <add>
// CHECK: math.log2 %{{.*}} : f32
// CHECK: math.isfinite
// CHECK: memref.store %{{.*}} : memref<1x1x64x8xf32>
func.func @leaf(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %lists: memref<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: memref<1x1x64x8xf32>) {
  pisa.score_block ins(%queries, %columns, %bias, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : memref<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
  return
}

// CHECK-LABEL: func.func @nodes(
// CHECK-NOT: pisa.
// CHECK: arith.maximumf %{{.*}} : vector<32xf32>
// CHECK-COUNT-2: math.exp2 %{{.*}} : vector<32xf32>
// CHECK: math.log2 %{{.*}} : vector<32xf32>
// CHECK: math.isfinite
func.func @nodes(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %lists: memref<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: memref<1x1x64x8xf32>) {
  pisa.score_block ins(%queries, %columns, %bias, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : memref<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 2 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 32 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
  return
}

// CHECK-LABEL: func.func @nothing_to_cut(
// CHECK-NEXT: return
func.func @nothing_to_cut(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %lists: memref<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: memref<1x1x64x8xf32>) {
  pisa.score_block ins(%queries, %columns, %bias, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : memref<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 8 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
  return
}
