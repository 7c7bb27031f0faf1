// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// What the verifiers of the phases refuse.

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<2xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>) {
  // pool_leaves, k_len
  // expected-error @below {{'pisa.pool_leaves' op expected dimension 0 of 'k_len' [B] to be 1, but got 2}}
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<2xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    -> tensor<1x2x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x20xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>) {
  // pool_leaves, head dimension
  // expected-error @below {{'pisa.pool_leaves' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got 20}}
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x20xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    -> tensor<1x2x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x1x4x64xf32>) {
  // pool_leaves, heads of sums
  // expected-error @below {{'pisa.pool_leaves' op expected dimension 1 of 'sums' [B, Hkv, leaves, D] to be 2, but got 1}}
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x1x4x64xf32>)
    -> tensor<1x1x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>) {
  // pool_leaves, atoms without outlier
  // expected-error @below {{'pisa.pool_leaves' op expected 'atoms' and 'outlier' to be given together, but got only 'atoms'}}
  %0:2 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    -> tensor<1x2x4x64xf32>, tensor<1x2x4x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x5xi32>) {
  // pool_leaves, leaves of the outlier
  // expected-error @below {{'pisa.pool_leaves' op expected dimension 2 of 'outlier' [B, Hkv, leaves] to be 4, but got 5}}
  %0:3 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    outlier(%outlier : tensor<1x2x5xi32>)
    -> tensor<1x2x4x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x5xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>,
    %atoms: tensor<1x2x4x5x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  // pool_leaves, A does not divide C
  // expected-error @below {{'pisa.pool_leaves' op expected 'leaf_atoms' to divide 'block_size' = 64, but got 5}}
  %0:3 = pisa.pool_leaves #pisa.params<topk = 4, leaf_atoms = 5> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    atoms(%atoms : tensor<1x2x4x5x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x4x64xf32>, tensor<1x2x4x5x64xf32>, tensor<1x2x4xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x8x64xf32>) {
  // pool_nodes, rows
  // expected-error @below {{'pisa.pool_nodes' op expected 'sums' to hold the 8 rows of 'pyramid', but got 7}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x8x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x8x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x32xf32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // pool_nodes, sums
  // expected-error @below {{'pisa.pool_nodes' op expected dimension 3 of 'sums' [B, Hkv, nodes, D] to be 64, but got 32}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x32xf32>, tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x32xf32>, tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x1x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // pool_nodes, leaf_sums
  // expected-error @below {{'pisa.pool_nodes' op expected dimension 1 of 'leaf_sums' [B, Hkv, leaves, D] to be 2, but got 1}}
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x1x4x64xf32>)
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
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %open: tensor<2x2x3x64xf32>) {
  // pool_nodes, open_sums
  // expected-error @below {{'pisa.pool_nodes' op expected dimension 0 of 'open_sums' [B, Hkv, levels, D] to be 1, but got 2}}
  %0:3 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>)
    open_sums(%open : tensor<2x2x3x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>, tensor<2x2x3x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x8xi32>) {
  // route_upper, no q_start
  // expected-error @below {{'pisa.route_upper' op expected 'q_start' in causal attention, but got none}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x9xi32>) {
  // route_upper, width of the leaves
  // expected-error @below {{'pisa.route_upper' op expected dimension 3 of 'leaves' [B, Hkv, NQ, g W] to be 8, but got 9}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x9xi32>)
    -> tensor<1x2x200x9xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x3x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x8xi32>) {
  // route_upper, heads
  // expected-error @below {{'pisa.route_upper' op expected the number of query heads to be a positive multiple of the number of kv heads, but got 3 and 2}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x3x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x32xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x8xi32>) {
  // route_upper, head dimension of the pyramid
  // expected-error @below {{'pisa.route_upper' op expected dimension 3 of 'pyramid' [B, Hkv, T, D] to be 64, but got 32}}
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x32xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xbf16>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // score_blocks, element type of k
  // expected-error @below {{'pisa.score_blocks' op expected element type of 'k' to be 'f32', that of 'q', but got 'bf16'}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xbf16>, tensor<1x2x200x8xi32>)
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
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x4xf32>) {
  // score_blocks, scores
  // expected-error @below {{'pisa.score_blocks' op expected dimension 3 of 'scores' [B, Hkv, NQ, n] to be 8, but got 4}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x4xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x200x?xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // score_blocks, a dynamic width
  // expected-error @below {{'pisa.score_blocks' op expected dimension 3 of 'leaves' to be static and positive, but got a dynamic one}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x?xi32>)
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
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // score_blocks, no limit
  // expected-error @below {{'pisa.score_blocks' op requires attribute 'limit'}}
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    -> tensor<1x2x200x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %atoms: tensor<1x2x4x3x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // prescore_blocks, atoms
  // expected-error @below {{'pisa.prescore_blocks' op expected dimension 3 of 'atoms' [B, Hkv, leaves, A, D] to be 4, but got 3}}
  %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4> ins(%q, %k, %atoms, %outlier, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x4x3x64xf32>, tensor<1x2x4xi32>, tensor<1x2x200x8xi32>)
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
    %k: tensor<1x2x256x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x5xi32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  // prescore_blocks, outlier
  // expected-error @below {{'pisa.prescore_blocks' op expected dimension 2 of 'outlier' [B, Hkv, leaves] to be 4, but got 5}}
  %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4> ins(%q, %k, %atoms, %outlier, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x5xi32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x8xf32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>) {
  // select_topk, no q_start
  // expected-error @below {{'pisa.select_topk' op expected 'q_start' in causal attention, but got none}}
  %0 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x4xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>) {
  // select_topk, scores
  // expected-error @below {{'pisa.select_topk' op expected dimension 3 of 'scores' [B, Hkv, NQ, n] to be 8, but got 4}}
  %0 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x4xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x2xi32>) {
  // select_topk, fewer entries than forced nodes
  // expected-error @below {{'pisa.select_topk' op expected 'kept' to hold the 3 forced nodes, but got width 2}}
  %0 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x2xi32>)
    -> tensor<1x2x200x2xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>,
    %count: tensor<1x2x20xi32>) {
  // select_topk, count
  // expected-error @below {{'pisa.select_topk' op expected dimension 2 of 'count' [B, Hkv, NQ] to be 200, but got 20}}
  %0:2 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    count(%count : tensor<1x2x20xi32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x20xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>,
    %ks: tensor<1x2x200x8xf32>) {
  // select_topk, kept_scores
  // expected-error @below {{'pisa.select_topk' op expected dimension 3 of 'kept_scores' [B, Hkv, NQ, limit] to be 4, but got 8}}
  %0:2 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    kept_scores(%ks : tensor<1x2x200x8xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attend_tiles, no q_start
  // expected-error @below {{'pisa.attend_tiles' op expected 'q_start' in causal attention, but got none}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x128x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attend_tiles, length of v
  // expected-error @below {{'pisa.attend_tiles' op expected dimension 2 of 'v' [B, Hkv, Tk, Dv] to be 256, but got 128}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x128x32xf32>, tensor<1x2x200x4xi32>)
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
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x100x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attend_tiles, indices
  // expected-error @below {{'pisa.attend_tiles' op expected dimension 2 of 'indices' [B, Hkv, NQ, K] to be 200, but got 100}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x100x4xi32>)
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
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x64xf32>) {
  // attend_tiles, o
  // expected-error @below {{'pisa.attend_tiles' op expected dimension 3 of 'o' [B, Hq, Tq, Dv] to be 32, but got 64}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
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
    %o: tensor<1x4x200x32xbf16>) {
  // attend_tiles, element type of o
  // expected-error @below {{'pisa.attend_tiles' op expected element type of 'o' to be 'f32', that of 'q', but got 'bf16'}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xbf16>)
    -> tensor<1x4x200x32xbf16>
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
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x100xf32>) {
  // attend_tiles, lse
  // expected-error @below {{'pisa.attend_tiles' op expected dimension 2 of 'lse' [B, Hq, Tq] to be 200, but got 100}}
  %0:2 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x100xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x100xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // attend_tiles, one memref
  // expected-error @below {{'pisa.attend_tiles' op expected operands to be all tensors or all memrefs, but got both}}
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, memref<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(%idx: tensor<1x2x200x4xi64>) {
  // check_indices, element type
  // expected-error @below {{'pisa.check_indices' op operand #0 must be a rank-4 tensor or memref of i32, but got 'tensor<1x2x200x4xi64>'}}
  pisa.check_indices %idx : tensor<1x2x200x4xi64>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>, %v: tensor<1x2x256x64xbf16>,
    %rows: tensor<1x2x5xi32>, %e: tensor<1x2x1024xi32>, %items: tensor<1x2x12x2xi32>,
    %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index, %scale: f32,
    %o: tensor<1x2x2048x64xbf16>, %lse: tensor<1x2x2048xf32>) {
  // attend_entries, no positions
  // expected-error @below {{'pisa.attend_entries' op expected 'q_start' in causal attention, but got none}}
  %0:2 = pisa.attend_entries #pisa.params<topk = 4> ins(%q, %k, %v, %rows, %e, %items :
      tensor<1x4x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>,
      tensor<1x2x5xi32>, tensor<1x2x1024xi32>, tensor<1x2x12x2xi32>)
    k_len(%n : tensor<1xi32>) query_offset(%first) scale(%scale)
    outs(%o, %lse : tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>)
    {gather = 128 : i64} -> tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>, %v: tensor<1x2x256x64xbf16>,
    %rows: tensor<1x2x5xi32>, %e: tensor<1x2x1024xi32>, %items: tensor<1x2x12x2xi32>,
    %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index, %scale: f32,
    %o: tensor<1x2x2048x64xbf16>, %lse: tensor<1x2x1024xf32>) {
  // attend_entries, rows of the sums
  // expected-error @below {{'pisa.attend_entries' op expected dimension 2 of 'partial_lse' [B, Hkv, entries Q G] to be 2048, but got 1024}}
  %0:2 = pisa.attend_entries #pisa.params<topk = 4> ins(%q, %k, %v, %rows, %e, %items :
      tensor<1x4x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>,
      tensor<1x2x5xi32>, tensor<1x2x1024xi32>, tensor<1x2x12x2xi32>)
    k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>) query_offset(%first) scale(%scale)
    outs(%o, %lse : tensor<1x2x2048x64xbf16>, tensor<1x2x1024xf32>)
    {gather = 128 : i64} -> tensor<1x2x2048x64xbf16>, tensor<1x2x1024xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x256x64xbf16>, %k: tensor<1x2x256x64xbf16>, %v: tensor<1x2x256x64xbf16>,
    %rows: tensor<1x2x5xi32>, %e: tensor<1x2x1024xi32>, %items: tensor<1x2x12x2xi32>,
    %n: tensor<1xi32>, %start: tensor<1xi32>, %first: index, %scale: f32,
    %o: tensor<1x2x2048x64xbf16>, %lse: tensor<1x2x2048xf32>) {
  // attend_entries, gather
  // expected-error @below {{'pisa.attend_entries' op expected 'gather' to be in [1, 1048576], but got 0}}
  %0:2 = pisa.attend_entries #pisa.params<topk = 4> ins(%q, %k, %v, %rows, %e, %items :
      tensor<1x4x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>,
      tensor<1x2x5xi32>, tensor<1x2x1024xi32>, tensor<1x2x12x2xi32>)
    k_len(%n : tensor<1xi32>) q_start(%start : tensor<1xi32>) query_offset(%first) scale(%scale)
    outs(%o, %lse : tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>)
    {gather = 0 : i64} -> tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>
  return
}

// -----

func.func @f(
    %lists: tensor<1x2x256x4xi32>, %p: tensor<1x2x2048x64xbf16>, %l: tensor<1x2x2048xf32>,
    %first: index, %o: tensor<1x4x256x64xbf16>, %lse: tensor<1x4x128xf32>) {
  // merge_entries, lse
  // expected-error @below {{'pisa.merge_entries' op expected dimension 2 of 'lse' [B, Hq, Tq] to be 256, but got 128}}
  %0:2 = pisa.merge_entries #pisa.params<topk = 4> ins(%lists, %p, %l :
      tensor<1x2x256x4xi32>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048xf32>)
    query_offset(%first) outs(%o : tensor<1x4x256x64xbf16>) lse(%lse : tensor<1x4x128xf32>)
    -> tensor<1x4x256x64xbf16>, tensor<1x4x128xf32>
  return
}

// -----

func.func @f(%lists: tensor<1x2x256x8xi32>, %first: index, %n: tensor<1xi32>,
    %init: tensor<1x2x4xi32>) {
  // count_entries, no positions
  // expected-error @below {{'pisa.count_entries' op expected 'q_start' beside 'k_len' in causal attention, but got none}}
  %0 = pisa.count_entries #pisa.params<topk = 4> ins(%lists : tensor<1x2x256x8xi32>)
    list_offset(%first) k_len(%n : tensor<1xi32>) outs(%init : tensor<1x2x4xi32>)
    {limit = 4 : i64} -> tensor<1x2x4xi32>
  return
}

// -----

func.func @f(%lists: tensor<1x2x256x8xi32>, %first: index, %start: tensor<1xi32>,
    %c: tensor<1x2x4xi32>, %e: tensor<1x2x2048xi32>) {
  // list_entries, positions of no sequence
  // expected-error @below {{'pisa.list_entries' op expected 'k_len' beside 'q_start' and 'query_length', but got none}}
  %0:2 = pisa.list_entries #pisa.params<topk = 4> ins(%lists : tensor<1x2x256x8xi32>)
    list_offset(%first) q_start(%start : tensor<1xi32>)
    outs(%c, %e : tensor<1x2x4xi32>, tensor<1x2x2048xi32>)
    {limit = 4 : i64} -> tensor<1x2x4xi32>, tensor<1x2x2048xi32>
  return
}
