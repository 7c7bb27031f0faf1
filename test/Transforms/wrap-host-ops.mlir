// Work between tasks becomes a task of its own, also where that is but one: a loop that is
// mapped to blocks does not fold away.

// RUN: pisa-opt %s --pisa-wrap-host-ops --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @fill_one(
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           linalg.fill
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>]}
func.func @fill_one(%x: i64, %buffer: memref<1xi64>) {
  linalg.fill ins(%x : i64) outs(%buffer : memref<1xi64>)
  return
}

// CHECK-LABEL: func.func @fill_many(
// CHECK:         %[[SIZE:.*]] = memref.dim
// CHECK:         scf.forall (%{{.*}}) in (%[[SIZE]]) {
// CHECK:           memref.subview %{{.*}} [1, 8] [1, 1]
// CHECK:           linalg.fill
func.func @fill_many(%x: f32, %buffer: memref<?x8xf32>) {
  linalg.fill ins(%x : f32) outs(%buffer : memref<?x8xf32>)
  return
}
