// RUN: pisa-opt %s -pisa-verify-level -verify-diagnostics -split-input-file

// The level has to be named.

// no level
// expected-error @below {{expected 'level' to be problem, phase, tile, kernel, gpu-kernel, plan or llvm, but got ''}}
module {
}
