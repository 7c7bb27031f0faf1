// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Each level is summed from the one below and divided by its counts; open sums are
// written where they are asked for.

// CHECK-LABEL: func.func @nodes(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.addf %{{.*}} : vector<64xf32>
// CHECK: arith.divf %{{.*}} : vector<64xf32>
// CHECK: arith.truncf
// CHECK: vector.store {{.*}} memref<1x1x7x64xbf16>
// CHECK: arith.remui
// CHECK: vector.store {{.*}} memref<1x1x3x64xf32>
func.func @nodes(
    %k: memref<1x1x256x64xf32>,
    %leaves: memref<1x1x4x64xf32>,
    %n: memref<1xi32>,
    %sums: memref<1x1x7x64xf32>,
    %pyr: memref<1x1x7x64xbf16>,
    %open: memref<1x1x3x64xf32>) {
  pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      memref<1x1x256x64xf32>, memref<1x1x4x64xf32>)
    k_len(%n : memref<1xi32>)
    outs(%sums, %pyr : memref<1x1x7x64xf32>, memref<1x1x7x64xbf16>)
    open_sums(%open : memref<1x1x3x64xf32>)
  return
}
