// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s

// Problems that are known to have no keys, no queries or no sequences compile: no task
// is left of them.

// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.func @route_no_keys(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @route_no_queries(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @route_no_batch(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @attention_no_keys(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @attention_no_queries(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @attention_no_batch(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @build_no_keys(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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

// CHECK: llvm.func @build_no_batch(
// CHECK-NOT: pisaParallelFor
// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
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
