// Blocks of 32 keys in parts of 16 give the same bits as their halves as blocks:
// the steps are the same.

// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/npy.py %t/whole.npy "<i4" 1x1x10x3 0 2 -1
// RUN: %python %S/Inputs/npy.py %t/halves.npy "<i4" 1x1x10x6 0 1 4 5 -1 -1
// RUN: pisa-runner %s --entry=parts --inputs=arg3=%t/whole.npy,arg4=90,arg5=0.25 \
// RUN:   --output-dir=%t/parts
// RUN: pisa-runner %s --entry=halves --inputs=arg3=%t/halves.npy,arg4=90,arg5=0.25 \
// RUN:   --output-dir=%t/halves
// RUN: cmp %t/parts/result0.npy %t/halves/result0.npy
// RUN: cmp %t/parts/result1.npy %t/halves/result1.npy

#parts = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 16,
  key_tile = 16>
#halves = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 16>

func.func @parts(%q: tensor<1x2x10x16xf32>, %k: tensor<1x1x96x16xf32>,
    %v: tensor<1x1x96x8xf32>, %indices: tensor<1x1x10x3xi32>, %k_len: tensor<1xi32>,
    %scale: f32, %o: tensor<1x2x10x8xf32>, %lse: tensor<1x2x10xf32>)
    -> (tensor<1x2x10x8xf32>, tensor<1x2x10xf32>) {
  %0:2 = pisa.attention #pisa.params<block_size = 32, topk = 3>
      ins(%q, %k, %v, %indices : tensor<1x2x10x16xf32>, tensor<1x1x96x16xf32>,
          tensor<1x1x96x8xf32>, tensor<1x1x10x3xi32>)
      k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%o : tensor<1x2x10x8xf32>) lse(%lse : tensor<1x2x10xf32>)
      {lowering_config = #parts} -> tensor<1x2x10x8xf32>, tensor<1x2x10xf32>
  return %0#0, %0#1 : tensor<1x2x10x8xf32>, tensor<1x2x10xf32>
}

func.func @halves(%q: tensor<1x2x10x16xf32>, %k: tensor<1x1x96x16xf32>,
    %v: tensor<1x1x96x8xf32>, %indices: tensor<1x1x10x6xi32>, %k_len: tensor<1xi32>,
    %scale: f32, %o: tensor<1x2x10x8xf32>, %lse: tensor<1x2x10xf32>)
    -> (tensor<1x2x10x8xf32>, tensor<1x2x10xf32>) {
  %0:2 = pisa.attention #pisa.params<block_size = 16, topk = 6>
      ins(%q, %k, %v, %indices : tensor<1x2x10x16xf32>, tensor<1x1x96x16xf32>,
          tensor<1x1x96x8xf32>, tensor<1x1x10x6xi32>)
      k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%o : tensor<1x2x10x8xf32>) lse(%lse : tensor<1x2x10xf32>)
      {lowering_config = #halves} -> tensor<1x2x10x8xf32>, tensor<1x2x10xf32>
  return %0#0, %0#1 : tensor<1x2x10x8xf32>, tensor<1x2x10xf32>
}
