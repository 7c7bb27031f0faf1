// Static shapes of one sequence: the clamp of its length is still a task.

// RUN: pisa-opt %s --pisa-nvptx-pipeline | FileCheck %s

// CHECK-LABEL: func.func @build
// CHECK:         gpu.launch_func
// CHECK-NOT:     linalg
func.func @build(%k: tensor<1x1x100x16xf16>, %k_len: tensor<1xi32>,
    %pyramid: tensor<1x1x14x16xf16>) -> tensor<1x1x14x16xf16> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<1x1x100x16xf16>) k_len(%k_len : tensor<1xi32>)
      outs(%pyramid : tensor<1x1x14x16xf16>) -> tensor<1x1x14x16xf16>
  return %0 : tensor<1x1x14x16xf16>
}
