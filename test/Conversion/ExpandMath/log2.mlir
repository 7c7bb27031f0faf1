// RUN: pisa-opt %s -pisa-expand-math | FileCheck %s

// log2 on float32 becomes a polynomial.

// CHECK-LABEL: func.func @scalar(
// CHECK-NOT: math.log2
// CHECK: math.fma {{.*}} : f32
// CHECK-NOT: math.log2
// CHECK: return
func.func @scalar(%x: f32) -> f32 {
  %0 = math.log2 %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @lanes(
// CHECK-NOT: math.log2
// CHECK: math.fma {{.*}} : vector<64xf32>
// CHECK-NOT: math.log2
// CHECK: return
func.func @lanes(%x: vector<64xf32>) -> vector<64xf32> {
  %0 = math.log2 %x : vector<64xf32>
  return %0 : vector<64xf32>
}
