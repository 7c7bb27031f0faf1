// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Sums of keys in index order, in float32; with atoms, a second pass finds the key
// farthest from the mean and sums around it.

// CHECK-LABEL: func.func @sums(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<64xf32>)
// CHECK: vector.load {{.*}} vector<64xbf16>
// CHECK: arith.extf
// CHECK: arith.addf %[[ACC]], %{{.*}} : vector<64xf32>
// CHECK: vector.store {{.*}} memref<1x1x4x64xf32>
// CHECK-NOT: arith.divf
func.func @sums(
    %k: memref<1x1x256x64xbf16>,
    %n: memref<1xi32>,
    %first: index,
    %sums: memref<1x1x4x64xf32>) {
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<1x1x256x64xbf16>)
    k_len(%n : memref<1xi32>)
    leaf_offset(%first)
    outs(%sums : memref<1x1x4x64xf32>)
  return
}

// CHECK-LABEL: func.func @atoms(
// CHECK-NOT: pisa.
// CHECK: arith.divf
// CHECK: vector.reduction <add>
// CHECK: arith.cmpf ogt
// CHECK: memref.store %{{.*}} : memref<1x1x4xi32>
// CHECK: vector.store {{.*}} memref<1x1x4x4x64xf32>
func.func @atoms(
    %k: memref<1x1x256x64xf32>,
    %n: memref<1xi32>,
    %first: index,
    %sums: memref<1x1x4x64xf32>,
    %atoms: memref<1x1x4x4x64xf32>,
    %outlier: memref<1x1x4xi32>) {
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<1x1x256x64xf32>)
    k_len(%n : memref<1xi32>)
    leaf_offset(%first)
    outs(%sums : memref<1x1x4x64xf32>)
    atoms(%atoms : memref<1x1x4x4x64xf32>)
    outlier(%outlier : memref<1x1x4xi32>)
  return
}
