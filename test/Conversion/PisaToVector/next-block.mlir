// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// The least entry above `after` is a minimum over all lists, in vectors.

// CHECK-LABEL: func.func @next(
// CHECK-NOT: pisa.
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<16xi32>
// CHECK: return %{{.*}} : index
func.func @next(%lists: memref<1x1x?x16xi32>, %after: index, %limit: index) -> index {
  %0 = pisa.next_block %lists after %after limit %limit
    {divisor = 16 : i64} : memref<1x1x?x16xi32>
  return %0 : index
}
