// RUN: pisa-opt %s -pisa-expand-math | FileCheck %s

// Other types and other functions are left alone.

// CHECK-LABEL: func.func @exp2_f64(
// CHECK-NEXT: math.exp2 %{{.*}} : f64
// CHECK-NEXT: return
func.func @exp2_f64(%x: f64) -> f64 {
  %0 = math.exp2 %x : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @exp2_f16(
// CHECK-NEXT: math.exp2 %{{.*}} : f16
// CHECK-NEXT: return
func.func @exp2_f16(%x: f16) -> f16 {
  %0 = math.exp2 %x : f16
  return %0 : f16
}

// CHECK-LABEL: func.func @exp2_f64_lanes(
// CHECK-NEXT: math.exp2 %{{.*}} : vector<8xf64>
// CHECK-NEXT: return
func.func @exp2_f64_lanes(%x: vector<8xf64>) -> vector<8xf64> {
  %0 = math.exp2 %x : vector<8xf64>
  return %0 : vector<8xf64>
}

// CHECK-LABEL: func.func @log2_f64(
// CHECK-NEXT: math.log2 %{{.*}} : f64
// CHECK-NEXT: return
func.func @log2_f64(%x: f64) -> f64 {
  %0 = math.log2 %x : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @exp(
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK-NEXT: return
func.func @exp(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @log(
// CHECK-NEXT: math.log %{{.*}} : vector<16xf32>
// CHECK-NEXT: return
func.func @log(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.log %x : vector<16xf32>
  return %0 : vector<16xf32>
}
