// RUN: pisa-opt %s -convert-pisa-to-vector -verify-diagnostics -split-input-file

// What is not a tile op on buffers is refused, and the pass that is missing is named.

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  // tensors
  // expected-error @below {{'pisa.pack_values' op expected memrefs to convert, but got tensors; run pisa-bufferize}}
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
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // tensors, phase
  // expected-error @below {{'pisa.attend_tiles' op expected memrefs to convert, but got tensors; run pisa-bufferize}}
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

func.func @f(
    %q: memref<1x2x64x64xf32>,
    %k: memref<1x1x256x64xf32>,
    %leaves: memref<1x1x64x8xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %scores: memref<1x1x64x8xf32>) {
  // a phase
  // expected-error @below {{'pisa.score_blocks' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
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
  // a problem
  // expected-error @below {{'pisa.attention' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%o : memref<1x4x200x32xf32>)
  return
}

// -----

func.func @f(
    %src: memref<1x1x256x64xf32>,
    %n: memref<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: memref<64x24xf32>,
    %bias: memref<24xf32>) {
  // columns that are not whole vectors
  // expected-error @below {{'pisa.pack_columns' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pack_columns ins(%src :
      memref<1x1x256x64xf32>)
    k_len(%n : memref<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : memref<64x24xf32>, memref<24xf32>)
    {group = 20 : i64, nodes = 1 : i64}
  return
}
