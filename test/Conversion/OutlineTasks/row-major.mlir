// RUN: pisa-opt %s -pisa-outline-tasks | FileCheck %s

// An iteration number is taken apart in row-major order: the last dimension runs
// fastest, and the first needs no division of its own.

// CHECK-LABEL: func.func private @grid_task0(
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[LAST:.*]] = arith.remui %[[I]], %[[COUNT:.*]] : index
// CHECK: %[[FIRST:.*]] = arith.divui %[[I]], %[[COUNT]] : index
// CHECK: %[[SCALED:.*]] = arith.muli %[[LAST]], %c8
// CHECK: %[[J:.*]] = arith.addi %{{.*}}, %[[SCALED]]
// CHECK-NOT: arith.remui
// CHECK: arith.muli %[[FIRST]],
// CHECK: memref.store
// The number of iterations is the product of ceil(extent / step).
// CHECK-LABEL: func.func @grid(
// CHECK: arith.ceildivsi
// CHECK: %[[A:.*]] = arith.muli
// CHECK: %[[B:.*]] = arith.ceildivsi
// CHECK: %[[TOTAL:.*]] = arith.muli %[[A]], %[[B]]
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[TOTAL]] : index to i64
// CHECK: call @pisaParallelFor(%{{.*}}, %{{.*}}, %[[COUNT]])
func.func @grid(%x: memref<4x?xf32>, %v: f32, %n: index) {
  scf.forall (%i, %j) = (0, 0) to (4, %n) step (1, 8) {
    memref.store %v, %x[%i, %j] : memref<4x?xf32>
  }
  return
}
