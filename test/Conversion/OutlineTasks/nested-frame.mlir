// RUN: pisa-opt %s -pisa-outline-tasks | FileCheck %s

// The frame of a loop inside a loop is allocated once a call of the outer task, in its
// entry block, and not once an iteration.

// CHECK-LABEL: func.func private @nested_task1(
// CHECK-NEXT: %[[SIZE:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK-NEXT: %[[FRAME:.*]] = llvm.alloca %[[SIZE]] x !llvm.struct<
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %{{.*}} : (!llvm.ptr, i64, i64) -> () to !llvm.ptr
// CHECK: call @pisaParallelFor(%[[ADDRESS]], %[[FRAME]],
// CHECK-NOT: llvm.alloca
// CHECK-LABEL: func.func @nested(
func.func @nested(%x: memref<?xf32>, %v: f32, %n: index) {
  scf.forall (%i) in (%n) {
    scf.forall (%j) in (%n) {
      memref.store %v, %x[%j] : memref<?xf32>
    }
  }
  return
}
