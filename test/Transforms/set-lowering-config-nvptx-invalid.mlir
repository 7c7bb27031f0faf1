// What the GPU code is not built for is refused, and the limit is named.

// RUN: pisa-opt %s --pisa-set-lowering-config=target=nvptx \
// RUN:   --split-input-file --verify-diagnostics

func.func @block_size(%k: tensor<1x1x64x8xbf16>, %n: tensor<1xi32>,
                      %p: tensor<1x1x15x8xbf16>) -> tensor<1x1x15x8xbf16> {
  // expected-error @below {{not implemented for NVPTX: expected 'block_size' to be 16, 32, 64, 128 or 256, but got 8}}
  %0 = pisa.build_pyramid #pisa.params<block_size = 8> ins(%k : tensor<1x1x64x8xbf16>)
         k_len(%n : tensor<1xi32>) outs(%p : tensor<1x1x15x8xbf16>) -> tensor<1x1x15x8xbf16>
  return %0 : tensor<1x1x15x8xbf16>
}

// -----

func.func @float32(%q: tensor<1x1x64x8xf32>, %k: tensor<1x1x64x8xf32>,
                   %p: tensor<1x1x1x8xf32>, %n: tensor<1xi32>, %scale: f32,
                   %i: tensor<1x1x64x16xi32>) -> tensor<1x1x64x16xi32> {
  // expected-error @below {{not implemented for NVPTX: expected queries of f16 or bf16, but got f32}}
  %0 = pisa.route #pisa.params<> ins(%q, %k, %p : tensor<1x1x64x8xf32>, tensor<1x1x64x8xf32>,
         tensor<1x1x1x8xf32>) k_len(%n : tensor<1xi32>) scale(%scale)
         outs(%i : tensor<1x1x64x16xi32>) -> tensor<1x1x64x16xi32>
  return %0 : tensor<1x1x64x16xi32>
}
