// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Rows are divided by their sum and rounded to the type of o; a row without keys gives 0
// and -inf.

// CHECK-LABEL: func.func @finish(
// CHECK-NOT: pisa.
// CHECK: arith.cmpf oeq
// CHECK: arith.divf
// CHECK-COUNT-2: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: math.log2 %{{.*}} : f32
// CHECK: memref.store %{{.*}} : memref<1x2x64xf32>
func.func @finish(
    %acc: memref<64x2x32xf32>,
    %max: memref<64x2xf32>,
    %sum: memref<64x2xf32>,
    %o: memref<1x2x64x32xbf16>,
    %lse: memref<1x2x64xf32>) {
  pisa.finish_attention ins(%acc, %max, %sum :
      memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
    outs(%o : memref<1x2x64x32xbf16>)
    lse(%lse : memref<1x2x64xf32>)
    {query_block = 1 : i64}
  return
}

// CHECK-LABEL: func.func @without_lse(
// CHECK-NOT: pisa.
// CHECK-NOT: math.log2
// CHECK-NOT: arith.truncf
// CHECK: vector.store {{.*}} vector<16xf32>
// CHECK-NOT: math.log2
// CHECK: return
func.func @without_lse(
    %acc: memref<64x2x32xf32>,
    %max: memref<64x2xf32>,
    %sum: memref<64x2xf32>,
    %o: memref<1x2x64x32xf32>) {
  pisa.finish_attention ins(%acc, %max, %sum :
      memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
    outs(%o : memref<1x2x64x32xf32>)
    {query_block = 1 : i64}
  return
}
