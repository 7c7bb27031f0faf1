// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s

// The smallest problems: a parallel loop of one iteration folds away.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @attention(
    %q: tensor<1x1x1x8xf32>,
    %k: tensor<1x1x1x8xf32>,
    %v: tensor<1x1x1x8xf32>,
    %idx: tensor<1x1x1x1xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x1x1x8xf32>)
    -> tensor<1x1x1x8xf32> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x1xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x1x1x8xf32>)
    -> tensor<1x1x1x8xf32>
  return %0 : tensor<1x1x1x8xf32>
}

func.func @route(
    %q: tensor<1x1x1x8xf32>,
    %k: tensor<1x1x1x8xf32>,
    %pyr: tensor<1x1x1x8xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x1x1x4xi32>)
    -> tensor<1x1x1x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x1x1x4xi32>)
    -> tensor<1x1x1x4xi32>
  return %0 : tensor<1x1x1x4xi32>
}

func.func @build(
    %k: tensor<1x1x1x8xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x1x1x8xf32>)
    -> tensor<1x1x1x8xf32> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x1x1x8xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x1x1x8xf32>)
    -> tensor<1x1x1x8xf32>
  return %0 : tensor<1x1x1x8xf32>
}
