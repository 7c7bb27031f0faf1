// RUN: pisa-opt %s -pisa-outline-tasks | FileCheck %s

// Two loops of a function are two tasks, a name that is taken is not used again, and the
// runtime is declared once.

// CHECK-COUNT-1: func.func private @pisaParallelFor(
// CHECK-NOT: func.func private @pisaParallelFor(
// CHECK-DAG: func.func private @f_task1(
// CHECK-DAG: func.func private @f_task2(
// CHECK-LABEL: func.func @f(
// CHECK: call @pisaParallelFor(
// CHECK: call @pisaParallelFor(
func.func private @f_task0()

func.func @f(%x: memref<4xf32>, %v: f32) {
  scf.forall (%i) in (4) {
    memref.store %v, %x[%i] : memref<4xf32>
  }
  scf.forall (%i) in (4) {
    memref.store %v, %x[%i] : memref<4xf32>
  }
  return
}
