// Lists are checked before anything reads them: the plan waits for the check, and fails or goes
// on. Without the option nothing is checked.

// RUN: pisa-opt %s --pisa-nvptx-pipeline=check-inputs=true -o %t
// RUN: FileCheck %s < %t
// RUN: pisa-translate --emit-ptx %t | FileCheck %s --check-prefix=PTX
// RUN: pisa-translate --emit-bundle %t | FileCheck %s --check-prefix=PLAN
// RUN: pisa-opt %s --pisa-nvptx-pipeline | FileCheck %s --check-prefix=OFF

// CHECK-LABEL: func.func @attend
// CHECK:         %[[STATUS:.*]] = memref.alloc() : memref<1xi64>
// CHECK:         gpu.launch_func @kernels::@attend_kernel0 {{.*}} args(%[[STATUS]] : memref<1xi64>
// CHECK:         gpu.launch_func @kernels::@attend_kernel1 {{.*}} %[[STATUS]] : memref<1xi64>
// CHECK-NEXT:    pisa.await_check %[[STATUS]]
// CHECK:         gpu.launch_func @kernels::@attend_kernel2

// PTX: atom.{{.*}}min.u64

// PLAN:     "op": "launch"
// PLAN:     "op": "launch"
// PLAN:     "op": "check",
// PLAN-NEXT: "operands": [
// PLAN:     "op": "launch"
// PLAN-NOT: "op": "check"

// OFF-NOT: check
func.func @attend(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>,
                  %v: tensor<?x2x?x64xbf16>, %i: tensor<?x2x?x4xi32>, %n: tensor<?xi32>,
                  %scale: f32, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %i : tensor<?x4x?x64xbf16>,
         tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x4xi32>)
         k_len(%n : tensor<?xi32>) scale(%scale) outs(%o : tensor<?x4x?x64xbf16>)
         -> tensor<?x4x?x64xbf16>
  return %0 : tensor<?x4x?x64xbf16>
}
