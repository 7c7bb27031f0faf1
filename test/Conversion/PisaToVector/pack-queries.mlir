// RUN: pisa-opt %s -convert-pisa-to-vector -canonicalize -cse | FileCheck %s

// Rows are extended to float32 and scaled by scale log2(e); rows past the last query
// are zero. No row past the end of q is read.

// CHECK-LABEL: func.func @pack(
// CHECK-NOT: pisa.
// CHECK: %[[F:.*]] = arith.mulf %{{.*}}, %cst
// CHECK: %[[N:.*]] = memref.dim %{{.*}}, %c2
// CHECK: scf.for
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %c4
// CHECK: arith.cmpi slt, %[[R]], %c4
// CHECK: arith.cmpi slt, %{{.*}}, %[[N]]
// CHECK: scf.if
// CHECK-COUNT-4: vector.load {{.*}} vector<16xbf16>
// CHECK: } else {
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NOT: vector.store
func.func @pack(
    %q: memref<1x2x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>,
    %scale: f32,
    %packed: memref<?x4x64xf32>) {
  pisa.pack_queries ins(%q :
      memref<1x2x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>)
    scale(%scale)
    outs(%packed : memref<?x4x64xf32>)
    {query_block = 2 : i64}
  return
}
