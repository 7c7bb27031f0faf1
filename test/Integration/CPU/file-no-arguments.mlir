// A function without arguments runs, writes no file, and takes no inputs.

// RUN: rm -rf %t && mkdir -p %t/out
// RUN: pisa-runner %s --output-dir=%t/out > %t/log 2>&1
// RUN: ls %t/out >> %t/log
// RUN: sh -c "pisa-runner %s --inputs=arg0=1; echo exit code $?" >> %t/log 2>&1
// RUN: FileCheck %s --match-full-lines --input-file=%t/log

//  CHECK-NOT:{{.}}
//      CHECK:pisa-runner: error: expected no inputs of @nothing, but got 'arg0'
// CHECK-NEXT:exit code 1
//  CHECK-NOT:{{.}}

func.func @nothing() {
  return
}
