// RUN: not pisa-opt %s -pisa-cpu-pipeline=vector-bits=wide 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not pisa-opt %s -pisa-cpu-pipeline=vector-bits=100 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: not pisa-opt %s -pisa-cpu-pipeline=check-inputs=maybe 2>&1 | FileCheck %s --check-prefix=MAYBE
// RUN: not pisa-opt %s -pisa-cpu-pipeline=threads=4 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not pisa-opt %s --pass-pipeline='builtin.module(pisa-cpu-pipeline{threads=4})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not pisa-opt %s --pass-pipeline='builtin.module(pisa-cpu-pipelines)' 2>&1 | FileCheck %s --check-prefix=NAME

// Options that do not exist, and values that are none.

// WIDE: 'wide' value invalid for
// WIDTH: expected 'vector-bits' to be 128, 256 or 512, but got 100{{$}}
// MAYBE: 'maybe' is invalid value for boolean argument
// UNKNOWN: no such option threads
// NAME: 'pisa-cpu-pipelines' does not refer to a registered pass or pass pipeline
module {
}
