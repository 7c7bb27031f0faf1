// RUN: pisa-opt %s -pisa-outline-tasks | FileCheck %s

// Stack buffers of a fixed size are allocated once a call of the task; one whose size
// is not known stays in the loop.

// CHECK-LABEL: func.func private @scratch_task0(
// CHECK-NEXT: %[[FIXED:.*]] = memref.alloca() : memref<16xf32>
// CHECK: scf.for
// CHECK-NOT: memref.alloca()
// CHECK: memref.alloca(%{{.*}}) : memref<?xf32>
// CHECK: memref.store %{{.*}}, %[[FIXED]]
// CHECK-LABEL: func.func @scratch(
func.func @scratch(%v: f32, %n: index) {
  scf.forall (%i) in (4) {
    %0 = memref.alloca() : memref<16xf32>
    %1 = memref.alloca(%n) : memref<?xf32>
    memref.store %v, %0[%i] : memref<16xf32>
    memref.store %v, %1[%i] : memref<?xf32>
  }
  return
}
