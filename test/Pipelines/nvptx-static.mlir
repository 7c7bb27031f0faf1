// Static shapes of one sequence: what is one task is still a task, also the clamp of the length.

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

// CHECK-LABEL: func.func @attend
// CHECK-NOT:     pisa.
// CHECK:         gpu.launch_func @kernels::@attend_kernel{{[0-9]+}} blocks in (%c1, %c1, %c1)
// CHECK-NOT:     pisa.
// CHECK:         return
func.func @attend(%q: tensor<1x2x16x16xbf16>, %k: tensor<1x1x64x16xbf16>,
    %idx: tensor<1x1x16x4xi32>, %n: tensor<1xi32>, %scale: f32,
    %out: tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16> {
  %0 = pisa.attention #pisa.params<block_size = 16, topk = 4>
         ins(%q, %k, %k, %idx : tensor<1x2x16x16xbf16>, tensor<1x1x64x16xbf16>,
             tensor<1x1x64x16xbf16>, tensor<1x1x16x4xi32>) k_len(%n : tensor<1xi32>)
         scale(%scale) outs(%out : tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16>
  return %0 : tensor<1x2x16x16xbf16>
}
