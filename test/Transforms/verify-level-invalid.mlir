// RUN: pisa-opt %s -pisa-verify-level=level=kernels -verify-diagnostics -split-input-file

// A level that does not exist.

// an unknown level
// expected-error @below {{expected 'level' to be problem, phase, tile, kernel, gpu-kernel, plan or llvm, but got 'kernels'}}
module {
}
