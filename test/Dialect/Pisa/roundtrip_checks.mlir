// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --canonicalize --cse | FileCheck %s

// A round trip; ops with effects on the runtime are not dropped.

// CHECK-LABEL: func.func @check_rows(
// CHECK: pisa.check_rows %{{.*}} first_row(%{{.*}}) status(%{{.*}} : memref<1xi64>) : memref<1x1x64x4xi32>
func.func @check_rows(%lists: memref<1x1x64x4xi32>, %first: index, %status: memref<1xi64>) {
  pisa.check_rows %lists first_row(%first) status(%status : memref<1xi64>)
      : memref<1x1x64x4xi32>
  return
}

// CHECK-LABEL: func.func @await_check(
// CHECK: pisa.await_check %{{.*}} kv_heads(%{{.*}}) query_blocks(%{{.*}}) : memref<1xi64>
func.func @await_check(%status: memref<1xi64>, %heads: index, %blocks: index) {
  pisa.await_check %status kv_heads(%heads) query_blocks(%blocks) : memref<1xi64>
  return
}

// CHECK-LABEL: func.func @check_indices(
// CHECK: pisa.check_indices
func.func @check_indices(%lists: tensor<1x2x256x4xi32>) {
  pisa.check_indices %lists : tensor<1x2x256x4xi32>
  return
}
