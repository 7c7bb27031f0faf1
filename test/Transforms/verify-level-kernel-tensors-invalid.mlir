// RUN: pisa-opt %s -pisa-verify-level=level=kernel -verify-diagnostics

// An op of a dialect that belongs to level kernel does not belong there on tensors.

func.func @on_buffers(%x: memref<4xf32>, %y: f32, %c: i1) -> memref<4xf32> {
  %0 = arith.select %c, %x, %x : memref<4xf32>
  %1 = arith.select %c, %y, %y : f32
  return %0 : memref<4xf32>
}

func.func @on_tensors(%t: tensor<4xf32>, %c: i1) {
  // expected-error @below {{'arith.select' op does not belong to level 'kernel'}}
  %0 = arith.select %c, %t, %t : tensor<4xf32>
  return
}
