// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: phases, with and without their optional operands.

// CHECK-LABEL: func.func @pool_leaves(
// CHECK: pisa.pool_leaves <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: leaf_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x4x64xf32>)
// CHECK-SAME: -> tensor<1x2x4x64xf32>
func.func @pool_leaves(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %sums: tensor<1x2x4x64xf32>) {
  %0 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<1x2x4x64xf32>)
    -> tensor<1x2x4x64xf32>
  return
}

// CHECK-LABEL: func.func @pool_leaves_dynamic(
// CHECK: pisa.pool_leaves <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<?x2x?x64xbf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<?xi32>)
// CHECK-SAME: leaf_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x2x?x64xf32>)
// CHECK-SAME: atoms({{[^:)]*}} : tensor<?x2x?x4x64xbf16>)
// CHECK-SAME: outlier({{[^:)]*}} : tensor<?x2x?xi32>)
// CHECK-SAME: -> tensor<?x2x?x64xf32>, tensor<?x2x?x4x64xbf16>, tensor<?x2x?xi32>
func.func @pool_leaves_dynamic(
    %k: tensor<?x2x?x64xbf16>,
    %n: tensor<?xi32>,
    %first: index,
    %sums: tensor<?x2x?x64xf32>,
    %atoms: tensor<?x2x?x4x64xbf16>,
    %outlier: tensor<?x2x?xi32>) {
  %0:3 = pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      tensor<?x2x?x64xbf16>)
    k_len(%n : tensor<?xi32>)
    leaf_offset(%first)
    outs(%sums : tensor<?x2x?x64xf32>)
    atoms(%atoms : tensor<?x2x?x4x64xbf16>)
    outlier(%outlier : tensor<?x2x?xi32>)
    -> tensor<?x2x?x64xf32>, tensor<?x2x?x4x64xbf16>, tensor<?x2x?xi32>
  return
}

// CHECK-LABEL: func.func @pool_leaves_memrefs(
// CHECK: pisa.pool_leaves <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: leaf_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x2x4x64xf32>)
func.func @pool_leaves_memrefs(
    %k: memref<1x2x256x64xf32>,
    %n: memref<1xi32>,
    %first: index,
    %sums: memref<1x2x4x64xf32>) {
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<1x2x256x64xf32>)
    k_len(%n : memref<1xi32>)
    leaf_offset(%first)
    outs(%sums : memref<1x2x4x64xf32>)
  return
}

// CHECK-LABEL: func.func @pool_nodes(
// CHECK: pisa.pool_nodes <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>
func.func @pool_nodes(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0:2 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @pool_nodes_open(
// CHECK: pisa.pool_nodes <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf16>)
// CHECK-SAME: open_sums({{[^:)]*}} : tensor<1x2x3x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf16>, tensor<1x2x3x64xf32>
func.func @pool_nodes_open(
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x4x64xf32>,
    %n: tensor<1xi32>,
    %sums: tensor<1x2x7x64xf32>,
    %pyr: tensor<1x2x7x64xf16>,
    %open: tensor<1x2x3x64xf32>) {
  %0:3 = pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      tensor<1x2x256x64xf32>, tensor<1x2x4x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%sums, %pyr : tensor<1x2x7x64xf32>, tensor<1x2x7x64xf16>)
    open_sums(%open : tensor<1x2x3x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x7x64xf16>, tensor<1x2x3x64xf32>
  return
}

// CHECK-LABEL: func.func @route_upper(
// CHECK: pisa.route_upper <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: capacity_leaves({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x8xi32>)
// CHECK-SAME: -> tensor<1x2x200x8xi32>
func.func @route_upper(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x8xi32>) {
  %0 = pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// CHECK-LABEL: func.func @route_upper_not_causal(
// CHECK: pisa.route_upper <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: capacity_leaves({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x8xi32>)
// CHECK-SAME: -> tensor<1x2x200x8xi32>
func.func @route_upper_not_causal(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x200x8xi32>) {
  %0 = pisa.route_upper #pisa.params<topk = 4, causal = false> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x200x8xi32>)
    -> tensor<1x2x200x8xi32>
  return
}

// CHECK-LABEL: func.func @route_upper_length(
// CHECK: pisa.route_upper <topk = 4, query_block = 2>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: query_length({{[^:)]*}})
// CHECK-SAME: capacity_leaves({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x100x8xi32>)
// CHECK-SAME: -> tensor<1x2x100x8xi32>
func.func @route_upper_length(
    %q: tensor<1x4x200x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %length: index,
    %cap: index,
    %scale: f32,
    %leaves: tensor<1x2x100x8xi32>) {
  %0 = pisa.route_upper #pisa.params<topk = 4, query_block = 2> ins(%q, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    query_length(%length)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : tensor<1x2x100x8xi32>)
    -> tensor<1x2x100x8xi32>
  return
}

// CHECK-LABEL: func.func @route_upper_memrefs(
// CHECK: pisa.route_upper <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x4x200x64xf32>, memref<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: capacity_leaves({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x2x200x8xi32>)
func.func @route_upper_memrefs(
    %q: memref<1x4x200x64xf32>,
    %pyr: memref<1x2x7x64xf32>,
    %n: memref<1xi32>,
    %start: memref<1xi32>,
    %first: index,
    %cap: index,
    %scale: f32,
    %leaves: memref<1x2x200x8xi32>) {
  pisa.route_upper #pisa.params<topk = 4> ins(%q, %pyr :
      memref<1x4x200x64xf32>, memref<1x2x7x64xf32>)
    k_len(%n : memref<1xi32>)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    capacity_leaves(%cap)
    scale(%scale)
    outs(%leaves : memref<1x2x200x8xi32>)
  return
}

// CHECK-LABEL: func.func @score_blocks(
// CHECK: pisa.score_blocks <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x8xf32>)
// CHECK-SAME: {limit = 4 : i64}
// CHECK-SAME: -> tensor<1x2x200x8xf32>
func.func @score_blocks(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x8xf32>
  return
}

// CHECK-LABEL: func.func @score_blocks_dynamic(
// CHECK: pisa.score_blocks <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x8xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<?xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x2x?x8xf32>)
// CHECK-SAME: {limit = 4 : i64}
// CHECK-SAME: -> tensor<?x2x?x8xf32>
func.func @score_blocks_dynamic(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %leaves: tensor<?x2x?x8xi32>,
    %n: tensor<?xi32>,
    %scale: f32,
    %scores: tensor<?x2x?x8xf32>) {
  %0 = pisa.score_blocks #pisa.params<topk = 4> ins(%q, %k, %leaves :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x8xi32>)
    k_len(%n : tensor<?xi32>)
    scale(%scale)
    outs(%scores : tensor<?x2x?x8xf32>)
    {limit = 4 : i64}
    -> tensor<?x2x?x8xf32>
  return
}

// CHECK-LABEL: func.func @prescore_blocks(
// CHECK: pisa.prescore_blocks <topk = 4, rerank = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>, tensor<1x2x200x8xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x8xf32>)
// CHECK-SAME: {limit = 4 : i64}
// CHECK-SAME: -> tensor<1x2x200x8xf32>
func.func @prescore_blocks(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4> ins(%q, %k, %atoms, %outlier, %leaves :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x8xf32>
  return
}

// CHECK-LABEL: func.func @prescore_blocks_bf16(
// CHECK: pisa.prescore_blocks <topk = 4, rerank = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x4x4x64xbf16>, tensor<1x2x4xi32>, tensor<1x2x200x8xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x8xf32>)
// CHECK-SAME: {limit = 4 : i64}
// CHECK-SAME: -> tensor<1x2x200x8xf32>
func.func @prescore_blocks_bf16(
    %q: tensor<1x4x200x64xbf16>,
    %k: tensor<1x2x256x64xbf16>,
    %atoms: tensor<1x2x4x4x64xbf16>,
    %outlier: tensor<1x2x4xi32>,
    %leaves: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %scores: tensor<1x2x200x8xf32>) {
  %0 = pisa.prescore_blocks #pisa.params<topk = 4, rerank = 4> ins(%q, %k, %atoms, %outlier, %leaves :
      tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x4x4x64xbf16>, tensor<1x2x4xi32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%scores : tensor<1x2x200x8xf32>)
    {limit = 4 : i64}
    -> tensor<1x2x200x8xf32>
  return
}

// CHECK-LABEL: func.func @select_topk(
// CHECK: pisa.select_topk <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @select_topk(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>) {
  %0 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @select_topk_all(
// CHECK: pisa.select_topk <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: query_length({{[^:)]*}})
// CHECK-SAME: level({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: count({{[^:)]*}} : tensor<1x2x200xi32>)
// CHECK-SAME: kept_scores({{[^:)]*}} : tensor<1x2x200x4xf32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
func.func @select_topk_all(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %length: index,
    %level: index,
    %kept: tensor<1x2x200x4xi32>,
    %count: tensor<1x2x200xi32>,
    %ks: tensor<1x2x200x4xf32>) {
  %0:3 = pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    query_length(%length)
    level(%level)
    outs(%kept : tensor<1x2x200x4xi32>)
    count(%count : tensor<1x2x200xi32>)
    kept_scores(%ks : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return
}

// CHECK-LABEL: func.func @select_topk_no_position(
// CHECK: pisa.select_topk <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: kept_scores({{[^:)]*}} : tensor<1x2x200x4xf32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
func.func @select_topk_no_position(
    %nodes: tensor<1x2x200x8xi32>,
    %scores: tensor<1x2x200x8xf32>,
    %n: tensor<1xi32>,
    %first: index,
    %kept: tensor<1x2x200x4xi32>,
    %ks: tensor<1x2x200x4xf32>) {
  %0:2 = pisa.select_topk #pisa.params<topk = 4, causal = false> ins(%nodes, %scores :
      tensor<1x2x200x8xi32>, tensor<1x2x200x8xf32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    outs(%kept : tensor<1x2x200x4xi32>)
    kept_scores(%ks : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
  return
}

// CHECK-LABEL: func.func @attend_tiles(
// CHECK: pisa.attend_tiles <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>
func.func @attend_tiles(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
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

// CHECK-LABEL: func.func @attend_tiles_lse(
// CHECK: pisa.attend_tiles <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: lse({{[^:)]*}} : tensor<1x4x200xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
func.func @attend_tiles_lse(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>) {
  %0:2 = pisa.attend_tiles #pisa.params<topk = 4, causal = false> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return
}

// CHECK-LABEL: func.func @attend_tiles_memrefs(
// CHECK: pisa.attend_tiles <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x4x200x32xf32>)
func.func @attend_tiles_memrefs(
    %q: memref<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %v: memref<1x2x256x32xf32>,
    %idx: memref<1x2x200x4xi32>,
    %n: memref<1xi32>,
    %start: memref<1xi32>,
    %first: index,
    %scale: f32,
    %o: memref<1x4x200x32xf32>) {
  pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
    k_len(%n : memref<1xi32>)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : memref<1x4x200x32xf32>)
  return
}

// CHECK-LABEL: func.func @check_indices(
// CHECK: pisa.check_indices %{{[a-z0-9]+}} : tensor<?x2x?x4xi32>
func.func @check_indices(%idx: tensor<?x2x?x4xi32>) {
  pisa.check_indices %idx : tensor<?x2x?x4xi32>
  return
}

// CHECK-LABEL: func.func @check_indices_memref(
// CHECK: pisa.check_indices %{{[a-z0-9]+}} : memref<1x2x200x4xi32>
func.func @check_indices_memref(%idx: memref<1x2x200x4xi32>) {
  pisa.check_indices %idx : memref<1x2x200x4xi32>
  return
}
