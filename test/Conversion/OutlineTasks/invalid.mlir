// RUN: pisa-opt %s -pisa-outline-tasks -verify-diagnostics -split-input-file

// A loop with shared outputs, and captures that LLVM has no type for.

func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> {
  // shared outputs
  // expected-error @below {{'scf.forall' op expected a bufferized loop to outline, but got shared outputs; run pisa-bufferize}}
  %0 = scf.forall (%i) in (4) shared_outs(%out = %t) -> (tensor<4xf32>) {
    %1 = tensor.extract_slice %out[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %out[%i] [1] [1]
        : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%t: tensor<4xf32>, %x: memref<4xf32>) {
  // a captured tensor
  // expected-error @below {{'scf.forall' op expected captured values of a type that LLVM has, but got 'tensor<4xf32>'}}
  scf.forall (%i) in (4) {
    %0 = tensor.extract %t[%i] : tensor<4xf32>
    memref.store %0, %x[%i] : memref<4xf32>
  }
  return
}
