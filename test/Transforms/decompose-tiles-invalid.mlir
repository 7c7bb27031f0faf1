// RUN: pisa-opt %s -pisa-decompose-tiles -verify-diagnostics -split-input-file

// A phase that is not one task, has no config, or is on memrefs.

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
  // two kv heads
  // expected-error @below {{'pisa.attend_tiles' op expected one sequence and one kv head, static, to decompose; run pisa-tile-and-fuse}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<2x2x64x64xf32>,
    %k: tensor<2x1x256x64xf32>,
    %leaves: tensor<2x1x64x8xi32>,
    %n: tensor<2xi32>,
    %scale: f32,
    %scores: tensor<2x1x64x8xf32>) {
  // several sequences
  // expected-error @below {{'pisa.score_blocks' op expected one sequence and one kv head, static, to decompose; run pisa-tile-and-fuse}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<2x2x64x64xf32>, tensor<2x1x256x64xf32>, tensor<2x1x64x8xi32>)
    k_len(%n : tensor<2xi32>)
    scale(%scale)
    outs(%scores : tensor<2x1x64x8xf32>)
    {limit = 4 : i64, lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<2x1x64x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x64x64xf32>,
    %pyr: tensor<?x1x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<?x1x64x8xi32>) {
  // an unknown number of sequences
  // expected-error @below {{'pisa.route_upper' op expected one sequence and one kv head, static, to decompose; run pisa-tile-and-fuse}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<?x2x64x64xf32>, tensor<?x1x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<?x1x64x8xi32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
    -> tensor<?x1x64x8xi32>
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
  // no config
  // expected-error @below {{'pisa.attend_tiles' op expected a 'lowering_config' to decompose, but got none; run pisa-set-lowering-config}}
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

func.func @f(
    %q: memref<1x2x64x64xf32>,
    %k: memref<1x1x256x64xf32>,
    %leaves: memref<1x1x64x8xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %scores: memref<1x1x64x8xf32>) {
  // memrefs
  // expected-error @below {{'pisa.score_blocks' op expected tensors to decompose, but got memrefs}}
  pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      memref<1x2x64x64xf32>, memref<1x1x256x64xf32>, memref<1x1x64x8xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%scores : memref<1x1x64x8xf32>)
    {limit = 4 : i64, lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>}
  return
}
