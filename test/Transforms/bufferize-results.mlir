// RUN: pisa-opt %s -pisa-bufferize | FileCheck %s

// A result that is one of the arguments is dropped; a result that is not is returned,
// and a function with callers keeps all its results.

// CHECK-LABEL: func.func @in_place(
// CHECK-NOT: ->
// CHECK: pisa.pack_values
// CHECK: return{{$}}
func.func @in_place(%v: tensor<1x1x256x32xf32>, %n: tensor<1xi32>, %b: index,
                    %init: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %0 = pisa.pack_values ins(%v : tensor<1x1x256x32xf32>) k_len(%n : tensor<1xi32>)
    block(%b) outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @new(
// CHECK-SAME: -> memref<64x32xf32>
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK: return %[[NEW]]
func.func @new(%v: tensor<1x1x256x32xf32>, %n: tensor<1xi32>, %b: index)
    -> tensor<64x32xf32> {
  %init = tensor.empty() : tensor<64x32xf32>
  %0 = pisa.pack_values ins(%v : tensor<1x1x256x32xf32>) k_len(%n : tensor<1xi32>)
    block(%b) outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @mixed(
// CHECK-SAME: -> index
// CHECK: return %{{.*}} : index
func.func @mixed(%b: index, %init: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, index) {
  return %init, %b : tensor<64x32xf32>, index
}

// CHECK-LABEL: func.func private @called(
// CHECK-SAME: -> memref<4xf32
// CHECK: return %{{.*}} : memref<4xf32
func.func private @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @caller(
// CHECK: call @called(
func.func @caller(%x: tensor<4xf32>, %i: index) -> f32 {
  %0 = call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tensor.extract %0[%i] : tensor<4xf32>
  return %1 : f32
}
