// RUN: pisa-opt %s -verify-diagnostics

// build-1: the message names the pyramid: the op has no query heads to speak of.

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x4x7x64xf32>) {
  // build-1, heads of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 1 of 'pyramid' [B, Hkv, nodes, D] to be 2, but got 4}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x4x7x64xf32>)
    -> tensor<1x4x7x64xf32>
  return
}
