// RUN: not pisa-opt %s -pisa-set-lowering-config=vector-bits=100 2>&1 | FileCheck %s

// A width that no target has is named as it was given.

// CHECK: error: expected 'vector-bits' to be 128, 256 or 512, but got 100{{$}}
module {
}
