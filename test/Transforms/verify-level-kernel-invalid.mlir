// RUN: pisa-opt %s -pisa-verify-level=level=kernel -verify-diagnostics -split-input-file

// What does not belong to level kernel: tensors, and what ran on them.

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  // a tile op on tensors
  // expected-error @below {{'pisa.pack_values' op does not belong to level 'kernel'}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return
}

// -----

func.func @f(
    %q: memref<1x2x64x64xf32>,
    %k: memref<1x1x256x64xf32>,
    %leaves: memref<1x1x64x8xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %scores: memref<1x1x64x8xf32>) {
  // a phase on memrefs
  // expected-error @below {{'pisa.score_blocks' op does not belong to level 'kernel'}}
  pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      memref<1x2x64x64xf32>, memref<1x1x256x64xf32>, memref<1x1x64x8xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%scores : memref<1x1x64x8xf32>)
    {limit = 4 : i64}
  return
}

// -----

func.func @f(
    %q: memref<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %v: memref<1x2x256x32xf32>,
    %idx: memref<1x2x200x4xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %o: memref<1x4x200x32xf32>) {
  // a problem on memrefs
  // expected-error @below {{'pisa.attention' op does not belong to level 'kernel'}}
  pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%o : memref<1x4x200x32xf32>)
  return
}

// -----

func.func @f() {
  // tensor.empty
  // expected-error @below {{'tensor.empty' op does not belong to level 'kernel'}}
  %0 = tensor.empty() : tensor<4xf32>
  return
}

// -----

func.func @f(%m: memref<4xf32>) {
  // bufferization
  // expected-error @below {{'bufferization.to_tensor' op does not belong to level 'kernel'}}
  %0 = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
  return
}
