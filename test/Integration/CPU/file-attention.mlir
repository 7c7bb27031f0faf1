// A function of a file: the same bits as the op, whether its shape is static or
// not. The numbers of --seed are those of the op for q, k and v.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner --op=attention --shape=1x2x1x32x96x16 --value-dim=8 \
// RUN:   --block-size=16 --topk=4 --output-dir=%t/op
// RUN: pisa-runner %s --entry=fixed \
// RUN:   --inputs=arg3=%t/op/indices.npy,arg4=96,arg5=0.25 --output-dir=%t/fixed
// RUN: cmp %t/op/out.npy %t/fixed/result0.npy
// RUN: cmp %t/op/lse.npy %t/fixed/result1.npy

// RUN: %python %S/Inputs/npy.py %t/q.npy "<f4" 2x2x10x16 random:1
// RUN: %python %S/Inputs/npy.py %t/k.npy "<f4" 2x1x70x16 random:2
// RUN: %python %S/Inputs/npy.py %t/v.npy "<f4" 2x1x70x8 random:3
// RUN: %python %S/Inputs/npy.py %t/length.npy "<i4" 2 70 33
// RUN: %python %S/Inputs/npy.py %t/o.npy "<f4" 2x2x10x8 nan
// RUN: %python %S/Inputs/npy.py %t/lse.npy "<f4" 2x2x10 nan
// RUN: pisa-runner --op=attention --inputs=q=%t/q.npy,k=%t/k.npy,v=%t/v.npy \
// RUN:   --k-len=70,33 --block-size=16 --topk=4 --output-dir=%t/op-files --verify
// RUN: pisa-runner %s --entry=dynamic --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/v.npy,arg3=%t/op-files/indices.npy,arg4=%t/length.npy,arg5=0.25,arg6=%t/o.npy,arg7=%t/lse.npy \
// RUN:   --output-dir=%t/dynamic
// RUN: cmp %t/op-files/out.npy %t/dynamic/result0.npy
// RUN: cmp %t/op-files/lse.npy %t/dynamic/result1.npy

func.func @fixed(%q: tensor<1x2x32x16xf32>, %k: tensor<1x1x96x16xf32>,
    %v: tensor<1x1x96x8xf32>, %indices: tensor<1x1x32x4xi32>,
    %k_len: tensor<1xi32>, %scale: f32, %o: tensor<1x2x32x8xf32>,
    %lse: tensor<1x2x32xf32>)
    -> (tensor<1x2x32x8xf32>, tensor<1x2x32xf32>) {
  %0:2 = pisa.attention #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %v, %indices : tensor<1x2x32x16xf32>, tensor<1x1x96x16xf32>,
          tensor<1x1x96x8xf32>, tensor<1x1x32x4xi32>)
      k_len(%k_len : tensor<1xi32>) scale(%scale)
      outs(%o : tensor<1x2x32x8xf32>) lse(%lse : tensor<1x2x32xf32>)
      -> tensor<1x2x32x8xf32>, tensor<1x2x32xf32>
  return %0#0, %0#1 : tensor<1x2x32x8xf32>, tensor<1x2x32xf32>
}

func.func @dynamic(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>,
    %v: tensor<?x1x?x8xf32>, %indices: tensor<?x1x?x4xi32>,
    %k_len: tensor<?xi32>, %scale: f32, %o: tensor<?x2x?x8xf32>,
    %lse: tensor<?x2x?xf32>)
    -> (tensor<?x2x?x8xf32>, tensor<?x2x?xf32>) {
  %0:2 = pisa.attention #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %v, %indices : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>,
          tensor<?x1x?x8xf32>, tensor<?x1x?x4xi32>)
      k_len(%k_len : tensor<?xi32>) scale(%scale)
      outs(%o : tensor<?x2x?x8xf32>) lse(%lse : tensor<?x2x?xf32>)
      -> tensor<?x2x?x8xf32>, tensor<?x2x?xf32>
  return %0#0, %0#1 : tensor<?x2x?x8xf32>, tensor<?x2x?xf32>
}
