// RUN: pisa-opt %s --pisa-set-lowering-config=target=rocm --verify-diagnostics

// expected-error @below {{expected 'target' to be cpu or nvptx, but got 'rocm'}}
module {
}
