// Building and routing with static shapes: outputs need no input of their own.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner --op=build_pyramid --shape=1x1x1x20x100x16 --block-size=16 \
// RUN:   --topk=4 --output-dir=%t/op
// RUN: pisa-runner --op=route --shape=1x1x1x20x100x16 --block-size=16 --topk=4 \
// RUN:   --output-dir=%t/op

// k of the op has its second stream of numbers, q its first.
// RUN: pisa-runner %s --entry=build --seed=1 --inputs=arg1=100 \
// RUN:   --output-dir=%t/build
// RUN: cmp %t/op/pyramid.npy %t/build/result0.npy
// RUN: pisa-runner %s --entry=route --output-dir=%t/route \
// RUN:   --inputs=arg2=%t/op/pyramid.npy,arg3=100,arg4=2.5e-1
// RUN: cmp %t/op/indices.npy %t/route/result0.npy
// RUN: cmp %t/op/count.npy %t/route/result1.npy

func.func @build(%k: tensor<1x1x100x16xf32>, %k_len: tensor<1xi32>,
    %pyramid: tensor<1x1x14x16xf32>) -> tensor<1x1x14x16xf32> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<1x1x100x16xf32>) k_len(%k_len : tensor<1xi32>)
      outs(%pyramid : tensor<1x1x14x16xf32>) -> tensor<1x1x14x16xf32>
  return %0 : tensor<1x1x14x16xf32>
}

func.func @route(%q: tensor<1x1x20x16xf32>, %k: tensor<1x1x100x16xf32>,
    %pyramid: tensor<1x1x14x16xf32>, %k_len: tensor<1xi32>, %scale: f32,
    %indices: tensor<1x1x20x4xi32>, %count: tensor<1x1x20xi32>)
    -> (tensor<1x1x20x4xi32>, tensor<1x1x20xi32>) {
  %0:2 = pisa.route #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %pyramid : tensor<1x1x20x16xf32>, tensor<1x1x100x16xf32>,
          tensor<1x1x14x16xf32>)
      k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%indices : tensor<1x1x20x4xi32>) count(%count : tensor<1x1x20xi32>)
      -> tensor<1x1x20x4xi32>, tensor<1x1x20xi32>
  return %0#0, %0#1 : tensor<1x1x20x4xi32>, tensor<1x1x20xi32>
}
