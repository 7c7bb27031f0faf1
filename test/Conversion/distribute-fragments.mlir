// A lane's part of a fragment: N / 2 elements of 16 x N, two of 16 x 1; a row's sum is that of its
// four lanes.

// RUN: pisa-opt %s --pisa-distribute-fragments | FileCheck %s

// CHECK-LABEL: @softcap
// CHECK-SAME:    memref<1xvector<32xf32>>
// CHECK:         memref.load {{.*}} : memref<1xvector<32xf32>>
// CHECK:         math.tanh {{.*}} : vector<32xf32>
// CHECK:         memref.store {{.*}} : memref<1xvector<32xf32>>
func.func @softcap(%scores: memref<1xvector<16x64xf32>>, %cap: f32) {
  %c0 = arith.constant 0 : index
  %s = memref.load %scores[%c0] : memref<1xvector<16x64xf32>>
  %caps = vector.broadcast %cap : f32 to vector<16x64xf32>
  %scaled = arith.divf %s, %caps : vector<16x64xf32>
  %t = math.tanh %scaled : vector<16x64xf32>
  %r = arith.mulf %t, %caps : vector<16x64xf32>
  memref.store %r, %scores[%c0] : memref<1xvector<16x64xf32>>
  return
}
