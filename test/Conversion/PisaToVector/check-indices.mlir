// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Duplicates are reported to the runtime, whose function is declared once.

// CHECK-COUNT-1: func.func private @pisaReportDuplicateBlock(i64, i64, i64, i64)
// CHECK-NOT: func.func private @pisaReportDuplicateBlock
// CHECK-LABEL: func.func @check(
// CHECK-NOT: pisa.
// CHECK-COUNT-5: scf.for
// CHECK: arith.cmpi eq
// CHECK: scf.if
// CHECK: call @pisaReportDuplicateBlock(
// CHECK: call @pisaReportDuplicateBlock(
func.func @check(%idx: memref<3x2x200x4xi32>) {
  pisa.check_indices %idx : memref<3x2x200x4xi32>
  pisa.check_indices %idx : memref<3x2x200x4xi32>
  return
}
