// RUN: pisa-opt %s -convert-pisa-to-gpu -canonicalize | FileCheck %s

// Lanes share the entries of the lists in equally many steps, the last of which
// is idle for some: a loop that starts at the lane's own number would be left by
// lanes at different times, and ptxas need not let them meet again before the
// next matrix product.

// CHECK-LABEL: func.func @next(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 32 : index
// CHECK: %[[COUNT:.*]] = arith.muli
// CHECK: scf.for %[[BASE:.*]] = %[[ZERO]] to %[[COUNT]] step %[[STEP]]
// CHECK: %[[LANE:.*]] = arith.remui
// CHECK: %[[I:.*]] = arith.addi %[[BASE]], %[[LANE]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I]], %[[COUNT]]
// CHECK: scf.if %[[INSIDE]]
// CHECK: vector.load
// CHECK: nvvm.redux.sync min
func.func @next(%lists: memref<1x1x?x14xi32>, %limit: index, %n: index,
                %out: memref<?xindex>) {
  scf.forall (%i) in (%n) {
    %0 = pisa.next_block %lists after %i limit %limit
      {divisor = 16 : i64} : memref<1x1x?x14xi32>
    memref.store %0, %out[%i] : memref<?xindex>
  } {pisa.num_warps = 4 : i64, pisa.shared_bytes = 0 : i64}
  return
}
