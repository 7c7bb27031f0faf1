// 128 queries over as many keys. The keys make 4 leaves of 32, and a pyramid of
// 4 + 2 + 1 nodes; each query chooses 2 of the leaves and attends to their keys.
func.func @layer(%q: tensor<1x1x128x8xf32>, %k: tensor<1x1x128x8xf32>,
                 %v: tensor<1x1x128x8xf32>, %pyramid: tensor<1x1x7x8xf32>,
                 %k_len: tensor<1xi32>, %scale: f32,
                 %lists: tensor<1x1x128x2xi32>, %out: tensor<1x1x128x8xf32>)
    -> tensor<1x1x128x8xf32> {
  %indices = pisa.route #pisa.params<block_size = 32, topk = 2, local_blocks = 1>
      ins(%q, %k, %pyramid : tensor<1x1x128x8xf32>, tensor<1x1x128x8xf32>,
          tensor<1x1x7x8xf32>) k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%lists : tensor<1x1x128x2xi32>) -> tensor<1x1x128x2xi32>
  %o = pisa.attention #pisa.params<block_size = 32, topk = 2, local_blocks = 1>
      ins(%q, %k, %v, %indices : tensor<1x1x128x8xf32>, tensor<1x1x128x8xf32>,
          tensor<1x1x128x8xf32>, tensor<1x1x128x2xi32>)
      k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%out : tensor<1x1x128x8xf32>) -> tensor<1x1x128x8xf32>
  return %o : tensor<1x1x128x8xf32>
}
