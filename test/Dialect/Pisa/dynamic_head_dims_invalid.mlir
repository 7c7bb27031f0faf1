// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// A dynamic head dimension of any operand is refused, also where that of another is known.

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x?xf32>) {
  // build_pyramid, pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected head dimension of 'pyramid' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x?xf32>)
    -> tensor<1x2x7x?xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x?xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  // route, k
  // expected-error @below {{'pisa.route' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x?xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x?xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  // route, pyramid
  // expected-error @below {{'pisa.route' op expected head dimension of 'pyramid' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x?xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x?xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attention, k
  // expected-error @below {{'pisa.attention' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x?xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x?xf32>) {
  // pool_leaves, sums
  // expected-error @below {{'pisa.pool_leaves' op expected head dimension of 'sums' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x?xf32>)
    -> tensor<1x2x4x?xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x?xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // pool_nodes, leaf_sums
  // expected-error @below {{'pisa.pool_nodes' op expected head dimension of 'leaf_sums' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x?xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x?xf32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // pool_nodes, sums
  // expected-error @below {{'pisa.pool_nodes' op expected head dimension of 'sums' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x?xf32>, tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x?xf32>, tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x?xf32>) {
  // pool_nodes, pyramid
  // expected-error @below {{'pisa.pool_nodes' op expected head dimension of 'pyramid' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x7x?xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x7x?xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x?xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %leaves: index,
    %scale: f32,
    %out: tensor<1x2x200x8xi32>) {
  // route_upper, pyramid
  // expected-error @below {{'pisa.route_upper' op expected head dimension of 'pyramid' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x?xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%leaves)
    scale(%scale)
    outs(%out : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x?xf32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // score_blocks, k
  // expected-error @below {{'pisa.score_blocks' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x?xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x?xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attend_tiles, k
  // expected-error @below {{'pisa.attend_tiles' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x?xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
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
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x2x?xf32>) {
  // pack_queries, packed
  // expected-error @below {{'pisa.pack_queries' op expected head dimension of 'packed' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x2x?xf32>)
    {query_block = 1 : i64}
    -> tensor<64x2x?xf32>
  return
}

// -----

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x?xf32>) {
  // pack_values, packed
  // expected-error @below {{'pisa.pack_values' op expected head dimension of 'packed' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x?xf32>)
    -> tensor<64x?xf32>
  return
}

// -----

func.func @f(
    %acc: tensor<64x2x?xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>,
    %o: tensor<1x2x64x32xf32>) {
  // finish_attention, acc
  // expected-error @below {{'pisa.finish_attention' op expected head dimension of 'acc' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<64x2x?xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    outs(%o : tensor<1x2x64x32xf32>)
    {query_block = 1 : i64}
    -> tensor<1x2x64x32xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %values: tensor<64x32xf32>,
    %lists: tensor<1x1x64x4xi32>,
    %block: index,
    %start: tensor<1xi32>,
    %first: index,
    %acc: tensor<64x2x?xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, acc
  // expected-error @below {{'pisa.attend_block' op expected head dimension of 'acc' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x?xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x?xf32>, tensor<64x2xf32>, tensor<64x2xf32>
  return
}
