// An argument that is returned as it came keeps its random values, while one that an
// op writes starts poisoned. A pyramid of one leaf of one key is that key.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner --op=build_pyramid --shape=1x1x1x0x1x8 --block-size=1 \
// RUN:   --leaf-atoms=1 --output-dir=%t/op
// RUN: pisa-runner %s --entry=pass --seed=1 --output-dir=%t/pass
// RUN: cmp %t/op/pyramid.npy %t/pass/result0.npy

// RUN: pisa-runner %s --entry=beside --seed=1 --inputs=arg1=1 \
// RUN:   --output-dir=%t/beside
// RUN: cmp %t/op/pyramid.npy %t/beside/result0.npy
// RUN: cmp %t/op/pyramid.npy %t/beside/result1.npy

func.func @pass(%0: tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32> {
  return %0 : tensor<1x1x1x8xf32>
}

func.func @beside(%k: tensor<1x1x1x8xf32>, %k_len: tensor<1xi32>,
    %pyramid: tensor<1x1x1x8xf32>)
    -> (tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) {
  %0 = pisa.build_pyramid #pisa.params<block_size = 1, leaf_atoms = 1>
      ins(%k : tensor<1x1x1x8xf32>) k_len(%k_len : tensor<1xi32>)
      outs(%pyramid : tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32>
  return %k, %0 : tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>
}
