// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Means and the outlier key of each leaf; what stands for no key is not read.

// CHECK-LABEL: func.func @atoms(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<1x1x4xi32>
// CHECK: math.log2 %{{.*}} : f32
// CHECK: memref.store %{{.*}} : memref<80xf32>
// CHECK: scf.if
// CHECK: memref.load %{{.*}} : memref<1x1x4x4x64xf32>
// CHECK: memref.store %{{.*}} : memref<64x80xf32>
// CHECK: scf.if
// CHECK: memref.load %{{.*}} : memref<1x1x256x64xf32>
func.func @atoms(
    %k: memref<1x1x256x64xf32>,
    %atoms: memref<1x1x4x4x64xf32>,
    %outlier: memref<1x1x4xi32>,
    %n: memref<1xi32>,
    %block: index,
    %columns: memref<64x80xf32>,
    %bias: memref<80xf32>) {
  pisa.pack_atoms ins(%k, %atoms, %outlier :
      memref<1x1x256x64xf32>, memref<1x1x4x4x64xf32>, memref<1x1x4xi32>)
    k_len(%n : memref<1xi32>)
    block(%block)
    outs(%columns, %bias : memref<64x80xf32>, memref<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
  return
}
