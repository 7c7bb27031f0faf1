// RUN: pisa-opt %s -pisa-verify-level=level=problem -verify-diagnostics -split-input-file

// What does not belong to level problem.

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // a phase
  // expected-error @below {{'pisa.attend_tiles' op does not belong to level 'problem'}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(%idx: tensor<1x2x200x4xi32>) {
  // a check
  // expected-error @below {{'pisa.check_indices' op does not belong to level 'problem'}}
  pisa.check_indices %idx : tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  // a tile op
  // expected-error @below {{'pisa.pack_values' op does not belong to level 'problem'}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return
}

// -----

func.func @f() {
  // a buffer
  // expected-error @below {{'memref.alloc' op does not belong to level 'problem'}}
  %0 = memref.alloc() : memref<4xf32>
  return
}
