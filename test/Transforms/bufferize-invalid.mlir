// RUN: pisa-opt %s -pisa-bufferize -verify-diagnostics -split-input-file

// Arguments that have no strided buffer.

// an unranked argument
// expected-error @below {{'func.func' op expected ranked tensor arguments, but got 'tensor<*xf32>'}}
func.func private @f(%t: tensor<*xf32>)

// -----

// an unranked argument
// expected-error @below {{'func.func' op expected ranked tensor arguments, but got 'tensor<*xf32>'}}
func.func @f(%i: index, %t: tensor<*xf32>) {
  return
}
