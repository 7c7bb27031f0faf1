// RUN: pisa-opt %s -pisa-expand-math | FileCheck %s

// Tensors are left alone, also beside what is expanded.

// CHECK-LABEL: func.func @exp2_static(
// CHECK-NEXT: math.exp2 %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return
func.func @exp2_static(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp2 %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @exp2_dynamic(
// CHECK-NEXT: math.exp2 %{{.*}} : tensor<?xf32>
// CHECK-NEXT: return
func.func @exp2_dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.exp2 %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @log2_static(
// CHECK-NEXT: math.log2 %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return
func.func @log2_static(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.log2 %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @log2_dynamic(
// CHECK-NEXT: math.log2 %{{.*}} : tensor<?xf32>
// CHECK-NEXT: return
func.func @log2_dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.log2 %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @mixed(
// CHECK: math.exp2 %{{.*}} : tensor<4xf32>
// CHECK-NOT: math.exp2
// CHECK: return
func.func @mixed(%x: tensor<4xf32>, %y: f32) -> (tensor<4xf32>, f32) {
  %0 = math.exp2 %x : tensor<4xf32>
  %1 = math.exp2 %y : f32
  return %0, %1 : tensor<4xf32>, f32
}
