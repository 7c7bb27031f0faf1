// RUN: pisa-opt %s -pisa-outline-tasks | FileCheck %s

// The body becomes a function of a range of iterations. What it captures travels in a
// struct on the stack; constants are made again.

// CHECK: func.func private @pisaParallelFor(!llvm.ptr, !llvm.ptr, i64)
// CHECK-LABEL: func.func private @store_task0(
// CHECK-SAME: %[[CAPTURES:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK-DAG: %[[SEVEN:.*]] = arith.constant 7.0
// CHECK-DAG: %[[P0:.*]] = llvm.getelementptr %[[CAPTURES]][0, 0]
// CHECK-DAG: %[[S0:.*]] = llvm.load %[[P0]]
// CHECK-DAG: %[[BUFFER:.*]] = builtin.unrealized_conversion_cast %[[S0]] : !llvm.struct<{{.*}}> to memref<?xf32>
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[LAST:.*]] = arith.index_cast %[[END]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK: memref.store %[[SEVEN]], %[[BUFFER]][
// CHECK: return
// CHECK-LABEL: func.func @store(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index
// CHECK-NOT: scf.forall
// CHECK: %[[FRAME:.*]] = llvm.alloca
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[FRAME]][0, 0]
// CHECK: %[[VALUE:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<?xf32> to !llvm.struct
// CHECK: llvm.store %[[VALUE]], %[[FIELD]]
// CHECK: %[[F:.*]] = constant @store_task0 :
// CHECK: %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[F]] :
// CHECK: call @pisaParallelFor(%[[ADDRESS]], %[[FRAME]], %{{.*}}) :
func.func @store(%x: memref<?xf32>, %n: index) {
  %seven = arith.constant 7.0 : f32
  scf.forall (%i) in (%n) {
    memref.store %seven, %x[%i] : memref<?xf32>
  }
  return
}
