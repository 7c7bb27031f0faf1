// RUN: pisa-opt %s -pisa-decompose | FileCheck %s

// Lengths are data: k_len is clamped to [0, Tk] before any phase, and no phase uses the
// given one.

// CHECK-LABEL: func.func @build(
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<1xi32>
// CHECK: %[[TK:.*]] = arith.constant 256 : index
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<1xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.pool_leaves
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.pool_nodes
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
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

// CHECK-LABEL: func.func @route(
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<1xi32>
// CHECK: %[[TK:.*]] = arith.constant 256 : index
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<1xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.route_upper
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.score_blocks
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.select_topk
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
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

// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<1xi32>
// CHECK: %[[TK:.*]] = arith.constant 256 : index
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<1xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.attend_tiles
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}

// CHECK-LABEL: func.func @build_dynamic(
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<?x2x?x64xf32>
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<?xi32>
// CHECK: %[[TK:.*]] = tensor.dim %[[K]], %c2
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<?xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.pool_leaves
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.pool_nodes
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
func.func @build_dynamic(
    %k: tensor<?x2x?x64xf32>,
    %n: tensor<?xi32>,
    %pyr: tensor<?x2x?x64xf32>)
    -> tensor<?x2x?x64xf32> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<?x2x?x64xf32>)
    k_len(%n : tensor<?xi32>)
    outs(%pyr : tensor<?x2x?x64xf32>)
    -> tensor<?x2x?x64xf32>
  return %0 : tensor<?x2x?x64xf32>
}

// CHECK-LABEL: func.func @route_dynamic(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<?x4x?x64xf32>
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<?x2x?x64xf32>
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<?xi32>
// CHECK: %[[TK:.*]] = tensor.dim %[[K]], %c2
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<?xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.route_upper
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.score_blocks
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.select_topk
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
func.func @route_dynamic(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %pyr: tensor<?x2x?x64xf32>,
    %n: tensor<?xi32>,
    %start: tensor<?xi32>,
    %scale: f32,
    %idx: tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
    k_len(%n : tensor<?xi32>)
    q_start(%start : tensor<?xi32>)
    scale(%scale)
    outs(%idx : tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32>
  return %0 : tensor<?x2x?x4xi32>
}

// CHECK-LABEL: func.func @attention_dynamic(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<?x4x?x64xf32>
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<?x2x?x64xf32>
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<?xi32>
// CHECK: %[[TK:.*]] = tensor.dim %[[K]], %c2
// CHECK: %[[CAPACITY:.*]] = arith.index_cast %[[TK]] : index to i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEN:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]] : tensor<?xi32>)
// CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[MOST:.*]] = arith.minsi %[[LENGTH]], %[[CAPACITY]] : i32
// CHECK-NEXT: %[[CLAMPED:.*]] = arith.maxsi %[[MOST]], %[[ZERO]] : i32
// CHECK-NEXT: linalg.yield %[[CLAMPED]] : i32
// CHECK-NOT: %[[GIVEN]]
// CHECK: pisa.attend_tiles
// CHECK-SAME: k_len(%[[LEN]] :
// CHECK-NOT: %[[GIVEN]]
// CHECK: return
func.func @attention_dynamic(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %v: tensor<?x2x?x32xf32>,
    %idx: tensor<?x2x?x4xi32>,
    %n: tensor<?xi32>,
    %start: tensor<?xi32>,
    %scale: f32,
    %o: tensor<?x4x?x32xf32>)
    -> tensor<?x4x?x32xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x4xi32>)
    k_len(%n : tensor<?xi32>)
    q_start(%start : tensor<?xi32>)
    scale(%scale)
    outs(%o : tensor<?x4x?x32xf32>)
    -> tensor<?x4x?x32xf32>
  return %0 : tensor<?x4x?x32xf32>
}
