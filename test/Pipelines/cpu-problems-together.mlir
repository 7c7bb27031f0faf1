// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s

// The three problems in one function, the pyramid and the lists staying inside of it.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
// CHECK: llvm.call @pisaParallelFor(
// CHECK: llvm.call @pisaParallelFor(
// CHECK: llvm.call @pisaParallelFor(
// CHECK: llvm.call @pisaParallelFor(
// CHECK-NOT: llvm.call @pisaParallelFor(
func.func @all(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>,
               %v: tensor<1x2x256x64xf32>, %n: tensor<1xi32>, %scale: f32,
               %o: tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32> {
  %pyramid_init = tensor.empty() : tensor<1x2x7x64xf32>
  %pyramid = pisa.build_pyramid #pisa.params<topk = 4>
    ins(%k : tensor<1x2x256x64xf32>) k_len(%n : tensor<1xi32>)
    outs(%pyramid_init : tensor<1x2x7x64xf32>) -> tensor<1x2x7x64xf32>
  %lists_init = tensor.empty() : tensor<1x2x200x4xi32>
  %lists = pisa.route #pisa.params<topk = 4>
    ins(%q, %k, %pyramid : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>) scale(%scale)
    outs(%lists_init : tensor<1x2x200x4xi32>) -> tensor<1x2x200x4xi32>
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %v, %lists : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>) scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32>
  return %0 : tensor<1x4x200x64xf32>
}
