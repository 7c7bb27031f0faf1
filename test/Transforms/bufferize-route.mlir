// RUN: pisa-opt %s -pisa-set-lowering-config -pisa-decompose -canonicalize -cse -pisa-tile-and-fuse -canonicalize -cse -pisa-decompose-tiles -canonicalize -cse \
// RUN:   -pisa-bufferize -canonicalize -cse -canonicalize > %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=ALLOC

// A task of the route allocates its lists, their scores, the packed queries and a
// packed block for each loop over blocks; all of it for the queries of one task, and
// none inside a loop over blocks. The clamped lengths are the only buffer that all
// tasks share. Nothing is copied.

// CHECK-LABEL: func.func @route(
// CHECK: memref.alloc() {{.*}} : memref<1xi32>
// CHECK-NOT: memref.alloc(
// CHECK: scf.forall
// ALLOC: scf.forall
// ALLOC-COUNT-10: memref.alloc(
// ALLOC-NOT: memref.alloc(
// CHECK-NOT: memref.copy
// CHECK-NOT: bufferization.
// CHECK-NOT: tensor
func.func @route(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}
