// Building and routing from files, dynamic shapes: the same bits as the op. What one
// function writes, the other reads.

// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/npy.py %t/q.npy "<V2" 2x3x10x16 random:1
// RUN: %python %S/Inputs/npy.py %t/k.npy "<V2" 2x1x100x16 random:2
// RUN: %python %S/Inputs/npy.py %t/length.npy "<i8" 2 100 61
// RUN: %python %S/Inputs/npy.py %t/pyramid.npy "<V2" 2x1x14x16 nan
// RUN: %python %S/Inputs/npy.py %t/indices.npy "<i4" 2x1x10x4 7
// RUN: %python %S/Inputs/npy.py %t/count.npy "<i4" 2x1x10 7
// RUN: pisa-runner --op=build_pyramid --inputs=k=%t/k.npy,k_len=%t/length.npy \
// RUN:   --block-size=16 --topk=4 --output-dir=%t/op --verify
// RUN: pisa-runner --op=route --inputs=q=%t/q.npy,k=%t/k.npy,k_len=%t/length.npy \
// RUN:   --block-size=16 --topk=4 --output-dir=%t/op --verify

// RUN: pisa-runner %s --entry=build --output-dir=%t/build \
// RUN:   --inputs=arg0=%t/k.npy,arg1=%t/length.npy,arg2=%t/pyramid.npy
// RUN: cmp %t/op/pyramid.npy %t/build/result0.npy
// RUN: pisa-runner %s --entry=route --output-dir=%t/route \
// RUN:   --inputs=arg0=%t/q.npy,arg1=%t/k.npy,arg2=%t/build/result0.npy,arg3=%t/length.npy,arg4=0.25,arg5=%t/indices.npy,arg6=%t/count.npy
// RUN: cmp %t/op/indices.npy %t/route/result0.npy
// RUN: cmp %t/op/count.npy %t/route/result1.npy

func.func @build(%k: tensor<?x1x?x16xbf16>, %k_len: tensor<?xi32>,
    %pyramid: tensor<?x1x?x16xbf16>) -> tensor<?x1x?x16xbf16> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<?x1x?x16xbf16>) k_len(%k_len : tensor<?xi32>)
      outs(%pyramid : tensor<?x1x?x16xbf16>) -> tensor<?x1x?x16xbf16>
  return %0 : tensor<?x1x?x16xbf16>
}

func.func @route(%q: tensor<?x3x?x16xbf16>, %k: tensor<?x1x?x16xbf16>,
    %pyramid: tensor<?x1x?x16xbf16>, %k_len: tensor<?xi32>, %scale: f32,
    %indices: tensor<?x1x?x4xi32>, %count: tensor<?x1x?xi32>)
    -> (tensor<?x1x?x4xi32>, tensor<?x1x?xi32>) {
  %0:2 = pisa.route #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %pyramid : tensor<?x3x?x16xbf16>, tensor<?x1x?x16xbf16>,
          tensor<?x1x?x16xbf16>)
      k_len(%k_len : tensor<?xi32>) scale(%scale)
      outs(%indices : tensor<?x1x?x4xi32>) count(%count : tensor<?x1x?xi32>)
      -> tensor<?x1x?x4xi32>, tensor<?x1x?xi32>
  return %0#0, %0#1 : tensor<?x1x?x4xi32>, tensor<?x1x?xi32>
}
