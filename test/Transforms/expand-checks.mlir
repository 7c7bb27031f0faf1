// A check becomes a status that begins as all ones, tasks that share it, and a report by the
// host, in this order.

// RUN: pisa-opt %s --pisa-expand-checks | FileCheck %s

// CHECK-LABEL: func.func @check(
// CHECK-SAME:      %[[LISTS:[^:]*]]: memref<?x2x?x4xi32
// CHECK:         %[[STATUS:.*]] = memref.alloc() : memref<1xi64>
// CHECK:         %[[NONE:.*]] = arith.constant -1 : i64
// CHECK:         linalg.fill ins(%[[NONE]] : i64) outs(%[[STATUS]] : memref<1xi64>)
// CHECK:         %[[BLOCKS:.*]] = memref.dim %[[LISTS]], %c2
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[J:.*]]) = (0, 0, 0) to (%{{.*}}, %{{.*}}, %[[BLOCKS]]) step (1, 1, 64)
// CHECK:           memref.subview %[[LISTS]][%[[B]], %[[H]], %[[J]], 0] [1, 1, %{{.*}}, 4]
// CHECK:           pisa.check_rows %{{.*}} first_row(%{{.*}}) status(%[[STATUS]] : memref<1xi64>)
// CHECK:         } {mapping = [
// CHECK:         pisa.await_check %[[STATUS]] kv_heads(%{{.*}}) query_blocks(%[[BLOCKS]])
// CHECK-NOT:     pisa.check_indices
func.func @check(%lists: memref<?x2x?x4xi32, strided<[?, ?, ?, 1], offset: ?>>) {
  pisa.check_indices %lists : memref<?x2x?x4xi32, strided<[?, ?, ?, 1], offset: ?>>
  return
}
