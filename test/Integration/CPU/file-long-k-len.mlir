// A k_len beyond the capacity Tk is Tk, and one below 0 is 0, to the bit: nothing past
// the arrays is read or written. 134217727 is the last block below 2^31 keys.

// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/npy.py %t/q.npy "<f4" 3x2x10x16 random:1
// RUN: %python %S/Inputs/npy.py %t/k.npy "<f4" 3x1x70x16 random:2
// RUN: %python %S/Inputs/npy.py %t/v.npy "<f4" 3x1x70x8 random:3
// RUN: %python %S/Inputs/npy.py %t/list.npy "<i4" 3x1x10x4 4 0 5 134217727
// RUN: %python %S/Inputs/npy.py %t/exact.npy "<i4" 3 70 70 0
// RUN: %python %S/Inputs/npy.py %t/long.npy "<i4" 3 71 2147483647 -2147483648
// RUN: %python %S/Inputs/npy.py %t/o.npy "<f4" 3x2x10x8 nan
// RUN: %python %S/Inputs/npy.py %t/lse.npy "<f4" 3x2x10 nan
// RUN: %python %S/Inputs/npy.py %t/pyramid.npy "<f4" 3x1x11x16 nan
// RUN: %python %S/Inputs/npy.py %t/indices.npy "<i4" 3x1x10x4 7
// RUN: %python %S/Inputs/npy.py %t/count.npy "<i4" 3x1x10 7

// RUN: pisa-runner %s --entry=build --output-dir=%t/build-exact \
// RUN:   --inputs=arg0=%t/k.npy,arg1=%t/exact.npy,arg2=%t/pyramid.npy
// RUN: pisa-runner %s --entry=build --output-dir=%t/build-long \
// RUN:   --inputs=arg0=%t/k.npy,arg1=%t/long.npy,arg2=%t/pyramid.npy
// RUN: cmp %t/build-exact/result0.npy %t/build-long/result0.npy

// RUN: pisa-runner %s --entry=route --output-dir=%t/route-exact \
// RUN:   --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/build-exact/result0.npy \
// RUN:   --inputs=arg3=%t/exact.npy,arg4=0.25,arg5=%t/indices.npy,arg6=%t/count.npy
// RUN: pisa-runner %s --entry=route --output-dir=%t/route-long \
// RUN:   --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/build-exact/result0.npy \
// RUN:   --inputs=arg3=%t/long.npy,arg4=0.25,arg5=%t/indices.npy,arg6=%t/count.npy
// RUN: cmp %t/route-exact/result0.npy %t/route-long/result0.npy
// RUN: cmp %t/route-exact/result1.npy %t/route-long/result1.npy

// RUN: pisa-runner %s --entry=attention --output-dir=%t/attention-exact \
// RUN:   --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/v.npy,arg3=%t/list.npy \
// RUN:   --inputs=arg4=%t/exact.npy,arg5=0.25,arg6=%t/o.npy,arg7=%t/lse.npy
// RUN: pisa-runner %s --entry=attention --output-dir=%t/attention-long \
// RUN:   --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/v.npy,arg3=%t/list.npy \
// RUN:   --inputs=arg4=%t/long.npy,arg5=0.25,arg6=%t/o.npy,arg7=%t/lse.npy
// RUN: cmp %t/attention-exact/result0.npy %t/attention-long/result0.npy
// RUN: cmp %t/attention-exact/result1.npy %t/attention-long/result1.npy

func.func @build(%k: tensor<?x1x?x16xf32>, %k_len: tensor<?xi32>,
    %pyramid: tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<?x1x?x16xf32>) k_len(%k_len : tensor<?xi32>)
      outs(%pyramid : tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  return %0 : tensor<?x1x?x16xf32>
}

func.func @route(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>,
    %pyramid: tensor<?x1x?x16xf32>, %k_len: tensor<?xi32>, %scale: f32,
    %indices: tensor<?x1x?x4xi32>, %count: tensor<?x1x?xi32>)
    -> (tensor<?x1x?x4xi32>, tensor<?x1x?xi32>) {
  %0:2 = pisa.route #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %pyramid : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>,
          tensor<?x1x?x16xf32>)
      k_len(%k_len : tensor<?xi32>) scale(%scale)
      outs(%indices : tensor<?x1x?x4xi32>) count(%count : tensor<?x1x?xi32>)
      -> tensor<?x1x?x4xi32>, tensor<?x1x?xi32>
  return %0#0, %0#1 : tensor<?x1x?x4xi32>, tensor<?x1x?xi32>
}

func.func @attention(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>,
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
