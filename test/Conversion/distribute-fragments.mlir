// A lane's part of a fragment has N / 2 elements of 16 x N; ops between products keep their form.

// RUN: pisa-opt %s --pisa-distribute-fragments | FileCheck %s

// CHECK-LABEL: @softcap
// CHECK:         memref.alloca() : memref<1xvector<32xf32>>
// CHECK:         memref.load {{.*}} : memref<1xvector<32xf32>>
// CHECK:         math.tanh {{.*}} : vector<32xf32>
// CHECK:         memref.store {{.*}} : memref<1xvector<32xf32>>
func.func @softcap(%cap: f32) {
  %c0 = arith.constant 0 : index
  %scores = memref.alloca() : memref<1xvector<16x64xf32>>
  %s = memref.load %scores[%c0] : memref<1xvector<16x64xf32>>
  %caps = vector.broadcast %cap : f32 to vector<16x64xf32>
  %scaled = arith.divf %s, %caps : vector<16x64xf32>
  %t = math.tanh %scaled : vector<16x64xf32>
  %r = arith.mulf %t, %caps : vector<16x64xf32>
  memref.store %r, %scores[%c0] : memref<1xvector<16x64xf32>>
  return
}

// The sum of a row: a lane's elements, then two shuffles among its four lanes.

// CHECK-LABEL: @row_sums
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT:     vector.multi_reduction
func.func @row_sums(%rows: memref<16x1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %s = arith.constant dense<1.0> : vector<16x64xf32>
  %sums = vector.multi_reduction <add>, %s, %zero [1] : vector<16x64xf32> to vector<16xf32>
  %column = vector.shape_cast %sums : vector<16xf32> to vector<16x1xf32>
  vector.store %column, %rows[%c0, %c0] : memref<16x1xf32>, vector<16x1xf32>
  return
}
