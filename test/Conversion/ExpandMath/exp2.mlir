// RUN: pisa-opt %s -pisa-expand-math | FileCheck %s

// exp2 on float32, scalar and vector, becomes a polynomial of degree 5 and an exponent;
// no integer conversion, whose result for NaN would be poison.

// CHECK-NOT: arith.fptosi
// CHECK-LABEL: func.func @scalar(
// CHECK-SAME: %[[X:.*]]: f32)
// CHECK-NOT: math.exp2
// CHECK: %[[R:.*]] = arith.addf %[[X]], %{{.*}} : f32
// CHECK-COUNT-5: math.fma {{.*}} : f32
// CHECK: arith.bitcast %[[R]] : f32 to i32
// CHECK: arith.shli
// CHECK: arith.cmpf olt, %[[X]],
// CHECK: arith.cmpf oge, %[[X]],
// CHECK: %[[E:.*]] = arith.select
// CHECK-NEXT: return %[[E]]
func.func @scalar(%x: f32) -> f32 {
  %0 = math.exp2 %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @lanes(
// CHECK-SAME: %[[X:.*]]: vector<16xf32>)
// CHECK-NOT: math.exp2
// CHECK: %[[R:.*]] = arith.addf %[[X]], %{{.*}} : vector<16xf32>
// CHECK-COUNT-5: math.fma {{.*}} : vector<16xf32>
// CHECK: arith.bitcast %[[R]] : vector<16xf32> to vector<16xi32>
// CHECK: arith.shli
// CHECK: arith.cmpf olt, %[[X]],
// CHECK: arith.cmpf oge, %[[X]],
// CHECK: %[[E:.*]] = arith.select
// CHECK-NEXT: return %[[E]]
func.func @lanes(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp2 %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @matrix(
// CHECK-SAME: %[[X:.*]]: vector<2x3xf32>)
// CHECK-NOT: math.exp2
// CHECK: %[[R:.*]] = arith.addf %[[X]], %{{.*}} : vector<2x3xf32>
// CHECK-COUNT-5: math.fma {{.*}} : vector<2x3xf32>
// CHECK: arith.bitcast %[[R]] : vector<2x3xf32> to vector<2x3xi32>
// CHECK: arith.shli
// CHECK: arith.cmpf olt, %[[X]],
// CHECK: arith.cmpf oge, %[[X]],
// CHECK: %[[E:.*]] = arith.select
// CHECK-NEXT: return %[[E]]
func.func @matrix(%x: vector<2x3xf32>) -> vector<2x3xf32> {
  %0 = math.exp2 %x : vector<2x3xf32>
  return %0 : vector<2x3xf32>
}
