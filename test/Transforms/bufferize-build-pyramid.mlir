// RUN: pisa-opt %s -pisa-set-lowering-config -pisa-decompose -canonicalize -cse -pisa-tile-and-fuse -canonicalize -cse -pisa-decompose-tiles -canonicalize -cse \
// RUN:   -pisa-bufferize -canonicalize -cse -canonicalize > %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=ALLOC

// The pyramid is written in place; the clamped lengths and the sums of the leaves and of
// all nodes are the only buffers, and nothing is copied.

// ALLOC: memref.alloc() {{.*}} : memref<1xi32>
// ALLOC: memref.alloc() {{.*}} : memref<1x2x7x64xf32>
// ALLOC: memref.alloc() {{.*}} : memref<1x2x4x64xf32>
// ALLOC-NOT: memref.alloc(
// CHECK-LABEL: func.func @build(
// CHECK-NOT: memref.copy
// CHECK-NOT: bufferization.
// CHECK: scf.forall
// CHECK-NOT: memref.copy
// CHECK: scf.forall
// CHECK-NOT: memref.copy
// CHECK: pisa.pool_nodes
// CHECK-NOT: memref.copy
func.func @build(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return %0 : tensor<1x2x7x64xf32>
}
