// RUN: pisa-opt %s -pisa-decompose | FileCheck %s --implicit-check-not=pisa.

// Problems that are known to have no keys, no queries or no sequences: a list of no
// entries, no output, and a pyramid without nodes, as it is.

// CHECK-LABEL: func.func @route_no_keys(
// CHECK-SAME: %[[IDX:[a-z0-9]+]]: tensor<1x2x200x4xi32>, %[[COUNT:[a-z0-9]+]]: tensor<1x2x200xi32>, %[[SCORES:[a-z0-9]+]]: tensor<1x2x200x4xf32>)
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[NONE]] : i32) outs(%[[IDX]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[ZERO]] : i32) outs(%[[COUNT]] :
// CHECK-DAG: %[[R2:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[SCORES]] :
// CHECK: return %[[R0]], %[[R1]], %[[R2]]
func.func @route_no_keys(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x0x64xf32>,
    %pyr: tensor<1x2x0x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %cnt: tensor<1x2x200xi32>,
    %sc: tensor<1x2x200x4xf32>)
    -> (tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
}

// CHECK-LABEL: func.func @route_no_queries(
// CHECK-SAME: %[[IDX:[a-z0-9]+]]: tensor<1x2x0x4xi32>, %[[COUNT:[a-z0-9]+]]: tensor<1x2x0xi32>, %[[SCORES:[a-z0-9]+]]: tensor<1x2x0x4xf32>)
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[NONE]] : i32) outs(%[[IDX]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[ZERO]] : i32) outs(%[[COUNT]] :
// CHECK-DAG: %[[R2:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[SCORES]] :
// CHECK: return %[[R0]], %[[R1]], %[[R2]]
func.func @route_no_queries(
    %q: tensor<1x4x0x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x0x4xi32>,
    %cnt: tensor<1x2x0xi32>,
    %sc: tensor<1x2x0x4xf32>)
    -> (tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x0x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x0x4xi32>)
    count(%cnt : tensor<1x2x0xi32>)
    scores(%sc : tensor<1x2x0x4xf32>)
    -> tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>
}

// CHECK-LABEL: func.func @route_no_batch(
// CHECK-SAME: %[[IDX:[a-z0-9]+]]: tensor<0x2x200x4xi32>, %[[COUNT:[a-z0-9]+]]: tensor<0x2x200xi32>, %[[SCORES:[a-z0-9]+]]: tensor<0x2x200x4xf32>)
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[NONE]] : i32) outs(%[[IDX]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[ZERO]] : i32) outs(%[[COUNT]] :
// CHECK-DAG: %[[R2:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[SCORES]] :
// CHECK: return %[[R0]], %[[R1]], %[[R2]]
func.func @route_no_batch(
    %q: tensor<0x4x200x64xf32>,
    %k: tensor<0x2x256x64xf32>,
    %pyr: tensor<0x2x7x64xf32>,
    %n: tensor<0xi32>,
    %scale: f32,
    %idx: tensor<0x2x200x4xi32>,
    %cnt: tensor<0x2x200xi32>,
    %sc: tensor<0x2x200x4xf32>)
    -> (tensor<0x2x200x4xi32>, tensor<0x2x200xi32>, tensor<0x2x200x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<0x4x200x64xf32>, tensor<0x2x256x64xf32>, tensor<0x2x7x64xf32>)
    k_len(%n : tensor<0xi32>)
    scale(%scale)
    outs(%idx : tensor<0x2x200x4xi32>)
    count(%cnt : tensor<0x2x200xi32>)
    scores(%sc : tensor<0x2x200x4xf32>)
    -> tensor<0x2x200x4xi32>, tensor<0x2x200xi32>, tensor<0x2x200x4xf32>
  return %0#0, %0#1, %0#2 : tensor<0x2x200x4xi32>, tensor<0x2x200xi32>, tensor<0x2x200x4xf32>
}

// CHECK-LABEL: func.func @route_no_tokens(
// CHECK-SAME: %[[IDX:[a-z0-9]+]]: tensor<1x2x0x4xi32>, %[[COUNT:[a-z0-9]+]]: tensor<1x2x0xi32>, %[[SCORES:[a-z0-9]+]]: tensor<1x2x0x4xf32>)
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[NONE]] : i32) outs(%[[IDX]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[ZERO]] : i32) outs(%[[COUNT]] :
// CHECK-DAG: %[[R2:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[SCORES]] :
// CHECK: return %[[R0]], %[[R1]], %[[R2]]
func.func @route_no_tokens(
    %q: tensor<1x4x0x64xf32>,
    %k: tensor<1x2x0x64xf32>,
    %pyr: tensor<1x2x0x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x0x4xi32>,
    %cnt: tensor<1x2x0xi32>,
    %sc: tensor<1x2x0x4xf32>)
    -> (tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x0x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x0x4xi32>)
    count(%cnt : tensor<1x2x0xi32>)
    scores(%sc : tensor<1x2x0x4xf32>)
    -> tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x0x4xi32>, tensor<1x2x0xi32>, tensor<1x2x0x4xf32>
}

// CHECK-LABEL: func.func @attention_no_keys(
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<1x4x200x32xf32>, %[[LSE:[a-z0-9]+]]: tensor<1x4x200xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[O]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[LSE]] :
// CHECK: return %[[R0]], %[[R1]]
func.func @attention_no_keys(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x0x64xf32>,
    %v: tensor<1x2x0x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>)
    -> (tensor<1x4x200x32xf32>, tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return %0#0, %0#1 : tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
}

// CHECK-LABEL: func.func @attention_no_queries(
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<1x4x0x32xf32>, %[[LSE:[a-z0-9]+]]: tensor<1x4x0xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[O]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[LSE]] :
// CHECK: return %[[R0]], %[[R1]]
func.func @attention_no_queries(
    %q: tensor<1x4x0x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x0x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x0x32xf32>,
    %lse: tensor<1x4x0xf32>)
    -> (tensor<1x4x0x32xf32>, tensor<1x4x0xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x0x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x0x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x0x32xf32>)
    lse(%lse : tensor<1x4x0xf32>)
    -> tensor<1x4x0x32xf32>, tensor<1x4x0xf32>
  return %0#0, %0#1 : tensor<1x4x0x32xf32>, tensor<1x4x0xf32>
}

// CHECK-LABEL: func.func @attention_no_batch(
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<0x4x200x32xf32>, %[[LSE:[a-z0-9]+]]: tensor<0x4x200xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[O]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[LSE]] :
// CHECK: return %[[R0]], %[[R1]]
func.func @attention_no_batch(
    %q: tensor<0x4x200x64xf32>,
    %k: tensor<0x2x256x64xf32>,
    %v: tensor<0x2x256x32xf32>,
    %idx: tensor<0x2x200x4xi32>,
    %n: tensor<0xi32>,
    %scale: f32,
    %o: tensor<0x4x200x32xf32>,
    %lse: tensor<0x4x200xf32>)
    -> (tensor<0x4x200x32xf32>, tensor<0x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<0x4x200x64xf32>, tensor<0x2x256x64xf32>, tensor<0x2x256x32xf32>, tensor<0x2x200x4xi32>)
    k_len(%n : tensor<0xi32>)
    scale(%scale)
    outs(%o : tensor<0x4x200x32xf32>)
    lse(%lse : tensor<0x4x200xf32>)
    -> tensor<0x4x200x32xf32>, tensor<0x4x200xf32>
  return %0#0, %0#1 : tensor<0x4x200x32xf32>, tensor<0x4x200xf32>
}

// CHECK-LABEL: func.func @attention_bf16(
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<1x4x200x32xbf16>, %[[LSE:[a-z0-9]+]]: tensor<1x4x200xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[R0:.*]] = linalg.fill ins(%[[ZERO]] : bf16) outs(%[[O]] :
// CHECK-DAG: %[[R1:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%[[LSE]] :
// CHECK: return %[[R0]], %[[R1]]
func.func @attention_bf16(
    %q: tensor<1x4x200x64xbf16>,
    %k: tensor<1x2x0x64xbf16>,
    %v: tensor<1x2x0x32xbf16>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xbf16>,
    %lse: tensor<1x4x200xf32>)
    -> (tensor<1x4x200x32xbf16>, tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xbf16>, tensor<1x2x0x64xbf16>, tensor<1x2x0x32xbf16>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xbf16>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xbf16>, tensor<1x4x200xf32>
  return %0#0, %0#1 : tensor<1x4x200x32xbf16>, tensor<1x4x200xf32>
}

// CHECK-LABEL: func.func @build_no_keys(
// CHECK-SAME: %[[PYR:[a-z0-9]+]]: tensor<1x2x0x64xf32>, %[[OPEN:[a-z0-9]+]]: tensor<1x2x0x64xf32>, %[[ATOMS:[a-z0-9]+]]: tensor<1x2x0x4x64xf32>, %[[OUTLIER:[a-z0-9]+]]: tensor<1x2x0xi32>)
// CHECK-NEXT: return %[[PYR]], %[[OPEN]], %[[ATOMS]], %[[OUTLIER]]
func.func @build_no_keys(
    %k: tensor<1x2x0x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x0x64xf32>,
    %open: tensor<1x2x0x64xf32>,
    %atoms: tensor<1x2x0x4x64xf32>,
    %outlier: tensor<1x2x0xi32>)
    -> (tensor<1x2x0x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x4x64xf32>, tensor<1x2x0xi32>) {
  %0:4 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x0x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x0x64xf32>)
    open_sums(%open : tensor<1x2x0x64xf32>)
    atoms(%atoms : tensor<1x2x0x4x64xf32>)
    outlier(%outlier : tensor<1x2x0xi32>)
    -> tensor<1x2x0x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x4x64xf32>, tensor<1x2x0xi32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<1x2x0x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x4x64xf32>, tensor<1x2x0xi32>
}

// CHECK-LABEL: func.func @build_no_batch(
// CHECK-SAME: %[[PYR:[a-z0-9]+]]: tensor<0x2x7x64xf32>, %[[OPEN:[a-z0-9]+]]: tensor<0x2x3x64xf32>, %[[ATOMS:[a-z0-9]+]]: tensor<0x2x4x4x64xf32>, %[[OUTLIER:[a-z0-9]+]]: tensor<0x2x4xi32>)
// CHECK-NEXT: return %[[PYR]], %[[OPEN]], %[[ATOMS]], %[[OUTLIER]]
func.func @build_no_batch(
    %k: tensor<0x2x256x64xf32>,
    %n: tensor<0xi32>,
    %pyr: tensor<0x2x7x64xf32>,
    %open: tensor<0x2x3x64xf32>,
    %atoms: tensor<0x2x4x4x64xf32>,
    %outlier: tensor<0x2x4xi32>)
    -> (tensor<0x2x7x64xf32>, tensor<0x2x3x64xf32>, tensor<0x2x4x4x64xf32>, tensor<0x2x4xi32>) {
  %0:4 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<0x2x256x64xf32>)
    k_len(%n : tensor<0xi32>)
    outs(%pyr : tensor<0x2x7x64xf32>)
    open_sums(%open : tensor<0x2x3x64xf32>)
    atoms(%atoms : tensor<0x2x4x4x64xf32>)
    outlier(%outlier : tensor<0x2x4xi32>)
    -> tensor<0x2x7x64xf32>, tensor<0x2x3x64xf32>, tensor<0x2x4x4x64xf32>, tensor<0x2x4xi32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<0x2x7x64xf32>, tensor<0x2x3x64xf32>, tensor<0x2x4x4x64xf32>, tensor<0x2x4xi32>
}
