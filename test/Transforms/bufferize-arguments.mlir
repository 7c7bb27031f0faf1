// RUN: pisa-opt %s -pisa-bufferize | FileCheck %s

// Arguments may have any strides and any offset, but their last dimension has unit
// stride. Rank 0 has no strides.

// CHECK-LABEL: func.func @arguments(
// CHECK-SAME: memref<1x1x256x32xf32, strided<[?, ?, ?, 1], offset: ?>>
// CHECK-SAME: memref<?xi32, strided<[1], offset: ?>>
// CHECK-SAME: index
// CHECK-SAME: memref<f32, strided<[], offset: ?>>
// CHECK-SAME: memref<64x32xf32, strided<[?, 1], offset: ?>>
func.func @arguments(%v: tensor<1x1x256x32xf32>, %n: tensor<?xi32>, %b: index,
                     %s: tensor<f32>, %init: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %0 = pisa.pack_values ins(%v : tensor<1x1x256x32xf32>) k_len(%n : tensor<?xi32>)
    block(%b) outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
