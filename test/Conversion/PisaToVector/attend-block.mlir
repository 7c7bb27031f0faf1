// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// An online-softmax step: scores, the new maximum, probabilities, and acc = alpha acc +
// P V. Causal: columns after the query are -inf.

// CHECK-LABEL: func.func @causal(
// CHECK-NOT: pisa.
// CHECK: memref.alloca() {{.*}}: memref<2x64xf32>
// CHECK: scf.if
// CHECK-COUNT-2: math.fma {{.*}} vector<64xf32>
// CHECK: %[[MASK:.*]] = arith.cmpi {{slt|sgt}}, %{{.*}} : vector<64xi32>
// CHECK: arith.select %[[MASK]],
// CHECK: vector.reduction <maximumf>
// CHECK: arith.maximumf
// CHECK: math.exp2 %{{.*}} : vector<64xf32>
// CHECK: vector.reduction <add>
// CHECK: math.exp2 %{{.*}} : f32
// CHECK: arith.mulf %{{.*}} : vector<32xf32>
// CHECK-COUNT-2: math.fma {{.*}} vector<32xf32>
// CHECK-COUNT-2: vector.store {{.*}} memref<64x2x32xf32>
func.func @causal(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %values: memref<64x32xf32>,
    %lists: memref<1x1x64x4xi32>,
    %block: index,
    %start: memref<1xi32>,
    %first: index,
    %acc: memref<64x2x32xf32>,
    %max: memref<64x2xf32>,
    %sum: memref<64x2xf32>) {
  pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64x32xf32>, memref<1x1x64x4xi32>)
    block(%block)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
  return
}

// CHECK-LABEL: func.func @not_causal(
// CHECK-NOT: pisa.
// CHECK-NOT: arith.cmpi {{.*}} : vector<64xi32>
// CHECK: math.exp2
func.func @not_causal(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %values: memref<64x32xf32>,
    %lists: memref<1x1x64x4xi32>,
    %block: index,
    %first: index,
    %acc: memref<64x2x32xf32>,
    %max: memref<64x2xf32>,
    %sum: memref<64x2xf32>) {
  pisa.attend_block #pisa.params<topk = 4, causal = false> ins(%queries, %columns, %bias, %values, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64x32xf32>, memref<1x1x64x4xi32>)
    block(%block)
    query_offset(%first)
    outs(%acc, %max, %sum : memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
  return
}
