// RUN: pisa-opt %s -pisa-verify-level=level=tile -verify-diagnostics -split-input-file

// What does not belong to level tile: problems, phases and buffers.

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // a problem
  // expected-error @below {{'pisa.build_pyramid' op does not belong to level 'tile'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x2x64x64xf32>,
    %k: tensor<1x1x256x64xf32>,
    %v: tensor<1x1x256x32xf32>,
    %idx: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x2x64x32xf32>) {
  // a phase
  // expected-error @below {{'pisa.attend_tiles' op does not belong to level 'tile'}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x2x64x64xf32>, tensor<1x1x256x64xf32>, tensor<1x1x256x32xf32>, tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x2x64x32xf32>)
    -> tensor<1x2x64x32xf32>
  return
}

// -----

func.func @f() {
  // a buffer
  // expected-error @below {{'memref.alloc' op does not belong to level 'tile'}}
  %0 = memref.alloc() : memref<4xf32>
  return
}
