// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: tile ops, on tensors and on memrefs.

// CHECK-LABEL: func.func @pack_queries(
// CHECK: pisa.pack_queries
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x64x64xf32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x2x64xf32>)
// CHECK-SAME: {query_block = 1 : i64}
// CHECK-SAME: -> tensor<64x2x64xf32>
func.func @pack_queries(
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x2x64xf32>) {
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x2x64xf32>)
    {query_block = 1 : i64}
    -> tensor<64x2x64xf32>
  return
}

// CHECK-LABEL: func.func @pack_queries_dynamic(
// CHECK: pisa.pack_queries
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x?x64xbf16>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x8x64xf32>)
// CHECK-SAME: {query_block = 4 : i64}
// CHECK-SAME: -> tensor<?x8x64xf32>
func.func @pack_queries_dynamic(
    %q: tensor<1x2x?x64xbf16>,
    %scale: f32,
    %packed: tensor<?x8x64xf32>) {
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x?x64xbf16>)
    scale(%scale)
    outs(%packed : tensor<?x8x64xf32>)
    {query_block = 4 : i64}
    -> tensor<?x8x64xf32>
  return
}

// CHECK-LABEL: func.func @pack_queries_memrefs(
// CHECK: pisa.pack_queries
// CHECK-SAME: ins({{[^:)]*}} : memref<1x2x64x64xf32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<64x2x64xf32>)
// CHECK-SAME: {query_block = 1 : i64}
func.func @pack_queries_memrefs(
    %q: memref<1x2x64x64xf32>,
    %scale: f32,
    %packed: memref<64x2x64xf32>) {
  pisa.pack_queries ins(%q :
      memref<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : memref<64x2x64xf32>)
    {query_block = 1 : i64}
  return
}

// CHECK-LABEL: func.func @pack_columns(
// CHECK: pisa.pack_columns
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: row_base({{[^:)]*}})
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: keys_per_row({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x64xf32>, tensor<64xf32>)
// CHECK-SAME: {group = 64 : i64, nodes = 1 : i64}
// CHECK-SAME: -> tensor<64x64xf32>, tensor<64xf32>
func.func @pack_columns(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @pack_columns_nodes(
// CHECK: pisa.pack_columns
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x?x64xf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: row_base({{[^:)]*}})
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: keys_per_row({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x64xf32>, tensor<64xf32>)
// CHECK-SAME: {group = 2 : i64, nodes = 32 : i64}
// CHECK-SAME: -> tensor<64x64xf32>, tensor<64xf32>
func.func @pack_columns_nodes(
    %src: tensor<1x1x?x64xf16>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x?x64xf16>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 2 : i64, nodes = 32 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @pack_columns_memrefs(
// CHECK: pisa.pack_columns
// CHECK-SAME: ins({{[^:)]*}} : memref<1x1x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: row_base({{[^:)]*}})
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: keys_per_row({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<64x64xf32>, memref<64xf32>)
// CHECK-SAME: {group = 64 : i64, nodes = 1 : i64}
func.func @pack_columns_memrefs(
    %src: memref<1x1x256x64xf32>,
    %n: memref<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>) {
  pisa.pack_columns ins(%src :
      memref<1x1x256x64xf32>)
    k_len(%n : memref<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : memref<64x64xf32>, memref<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
  return
}

// CHECK-LABEL: func.func @pack_atoms(
// CHECK: pisa.pack_atoms
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x80xf32>, tensor<80xf32>)
// CHECK-SAME: {block_size = 64 : i64, nodes = 16 : i64}
// CHECK-SAME: -> tensor<64x80xf32>, tensor<80xf32>
func.func @pack_atoms(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x4x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x80xf32>,
    %bias: tensor<80xf32>) {
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x80xf32>, tensor<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
    -> tensor<64x80xf32>, tensor<80xf32>
  return
}

// CHECK-LABEL: func.func @pack_atoms_memrefs(
// CHECK: pisa.pack_atoms
// CHECK-SAME: ins({{[^:)]*}} : memref<1x1x256x64xf32>, memref<1x1x4x4x64xf32>, memref<1x1x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<64x80xf32>, memref<80xf32>)
// CHECK-SAME: {block_size = 64 : i64, nodes = 16 : i64}
func.func @pack_atoms_memrefs(
    %k: memref<1x1x256x64xf32>,
    %atoms: memref<1x1x4x4x64xf32>,
    %outlier: memref<1x1x4xi32>,
    %n: memref<1xi32>,
    %block: index,
    %columns: memref<64x80xf32>,
    %bias: memref<80xf32>) {
  pisa.pack_atoms ins(%k, %atoms, %outlier :
      memref<1x1x256x64xf32>, memref<1x1x4x4x64xf32>, memref<1x1x4xi32>)
    k_len(%n : memref<1xi32>)
    block(%block)
    outs(%columns, %bias : memref<64x80xf32>, memref<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
  return
}

// CHECK-LABEL: func.func @pack_values(
// CHECK: pisa.pack_values
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x256x32xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x32xf32>)
// CHECK-SAME: -> tensor<64x32xf32>
func.func @pack_values(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return
}

// CHECK-LABEL: func.func @pack_values_memrefs(
// CHECK: pisa.pack_values
// CHECK-SAME: ins({{[^:)]*}} : memref<1x1x256x32xbf16>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<64x32xf32>)
func.func @pack_values_memrefs(
    %v: memref<1x1x256x32xbf16>,
    %n: memref<1xi32>,
    %block: index,
    %packed: memref<64x32xf32>) {
  pisa.pack_values ins(%v :
      memref<1x1x256x32xbf16>)
    k_len(%n : memref<1xi32>)
    block(%block)
    outs(%packed : memref<64x32xf32>)
  return
}

// CHECK-LABEL: func.func @next_block(
// CHECK: pisa.next_block %{{[a-z0-9]+}} after %{{[a-z0-9]+}} limit %{{[a-z0-9]+}}
// CHECK-SAME: {divisor = 1 : i64} : tensor<1x1x64x16xi32>
func.func @next_block(%lists: tensor<1x1x64x16xi32>, %after: index, %limit: index) {
  %0 = pisa.next_block %lists after %after limit %limit
    {divisor = 1 : i64} : tensor<1x1x64x16xi32>
  return
}

// CHECK-LABEL: func.func @next_block_memref(
// CHECK: pisa.next_block %{{[a-z0-9]+}} after %{{[a-z0-9]+}} limit %{{[a-z0-9]+}}
// CHECK-SAME: {divisor = 16 : i64} : memref<1x1x?x16xi32>
func.func @next_block_memref(%lists: memref<1x1x?x16xi32>, %after: index, %limit: index) {
  %0 = pisa.next_block %lists after %after limit %limit
    {divisor = 16 : i64} : memref<1x1x?x16xi32>
  return
}

// CHECK-LABEL: func.func @expand_nodes(
// CHECK: pisa.expand_nodes <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x64x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: level({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x1x64x8xi32>)
// CHECK-SAME: -> tensor<1x1x64x8xi32>
func.func @expand_nodes(
    %nodes: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %level: index,
    %children: tensor<1x1x64x8xi32>) {
  %0 = pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32>
  return
}

// CHECK-LABEL: func.func @expand_nodes_length(
// CHECK: pisa.expand_nodes <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x64x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: query_length({{[^:)]*}})
// CHECK-SAME: level({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x1x64x8xi32>)
// CHECK-SAME: -> tensor<1x1x64x8xi32>
func.func @expand_nodes_length(
    %nodes: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %length: index,
    %level: index,
    %children: tensor<1x1x64x8xi32>) {
  %0 = pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    query_length(%length)
    level(%level)
    outs(%children : tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32>
  return
}

// CHECK-LABEL: func.func @expand_nodes_no_position(
// CHECK: pisa.expand_nodes <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x1x64x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: level({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x1x64x8xi32>)
// CHECK-SAME: -> tensor<1x1x64x8xi32>
func.func @expand_nodes_no_position(
    %nodes: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %first: index,
    %level: index,
    %children: tensor<1x1x64x8xi32>) {
  %0 = pisa.expand_nodes #pisa.params<topk = 4, causal = false> ins(%nodes :
      tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32>
  return
}

// CHECK-LABEL: func.func @score_block(
// CHECK: pisa.score_block
// CHECK-SAME: ins({{[^:)]*}} : tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: num_queries({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x1x64x8xf32>)
// CHECK-SAME: {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64, query_block = 1 : i64, row_tile = 2 : i64}
// CHECK-SAME: -> tensor<1x1x64x8xf32>
func.func @score_block(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// CHECK-LABEL: func.func @score_block_memrefs(
// CHECK: pisa.score_block
// CHECK-SAME: ins({{[^:)]*}} : memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<1x1x64x8xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: num_queries({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x1x64x8xf32>)
// CHECK-SAME: {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64, query_block = 1 : i64, row_tile = 2 : i64}
func.func @score_block_memrefs(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %lists: memref<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: memref<1x1x64x8xf32>) {
  pisa.score_block ins(%queries, %columns, %bias, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : memref<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
  return
}

// CHECK-LABEL: func.func @attend_block(
// CHECK: pisa.attend_block <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
// CHECK-SAME: {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
// CHECK-SAME: -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
func.func @attend_block(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %values: tensor<64x32xf32>,
    %lists: tensor<1x1x64x4xi32>,
    %block: index,
    %start: tensor<1xi32>,
    %first: index,
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
  return
}

// CHECK-LABEL: func.func @attend_block_not_causal(
// CHECK: pisa.attend_block <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
// CHECK-SAME: {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
// CHECK-SAME: -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
func.func @attend_block_not_causal(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %values: tensor<64x32xf32>,
    %lists: tensor<1x1x64x4xi32>,
    %block: index,
    %first: index,
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  %0:3 = pisa.attend_block #pisa.params<topk = 4, causal = false> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
  return
}

// CHECK-LABEL: func.func @attend_block_memrefs(
// CHECK: pisa.attend_block <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64x32xf32>, memref<1x1x64x4xi32>)
// CHECK-SAME: block({{[^:)]*}})
// CHECK-SAME: q_start({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: query_offset({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
// CHECK-SAME: {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
func.func @attend_block_memrefs(
    %queries: memref<64x2x64xf32>,
    %columns: memref<64x64xf32>,
    %bias: memref<64xf32>,
    %values: memref<64x32xf32>,
    %lists: memref<1x1x64x4xi32>,
    %block: index,
    %start: memref<1xi32>,
    %first: index,
    %acc: memref<64x2x32xf32>,
    %max: memref<64x2xf32>,
    %sum: memref<64x2xf32>) {
  pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      memref<64x2x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64x32xf32>, memref<1x1x64x4xi32>)
    block(%block)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : memref<64x2x32xf32>, memref<64x2xf32>, memref<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
  return
}

// CHECK-LABEL: func.func @finish_attention(
// CHECK: pisa.finish_attention
// CHECK-SAME: ins({{[^:)]*}} : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x64x32xf32>)
// CHECK-SAME: {query_block = 1 : i64}
// CHECK-SAME: -> tensor<1x2x64x32xf32>
func.func @finish_attention(
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>,
    %o: tensor<1x2x64x32xf32>) {
  %0 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    outs(%o : tensor<1x2x64x32xf32>)
    {query_block = 1 : i64}
    -> tensor<1x2x64x32xf32>
  return
}

// CHECK-LABEL: func.func @finish_attention_lse(
// CHECK: pisa.finish_attention
// CHECK-SAME: ins({{[^:)]*}} : tensor<16x8x32xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x61x32xf16>)
// CHECK-SAME: lse({{[^:)]*}} : tensor<1x2x61xf32>)
// CHECK-SAME: {query_block = 4 : i64}
// CHECK-SAME: -> tensor<1x2x61x32xf16>, tensor<1x2x61xf32>
func.func @finish_attention_lse(
    %acc: tensor<16x8x32xf32>,
    %max: tensor<16x8xf32>,
    %sum: tensor<16x8xf32>,
    %o: tensor<1x2x61x32xf16>,
    %lse: tensor<1x2x61xf32>) {
  %0:2 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<16x8x32xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
    outs(%o : tensor<1x2x61x32xf16>)
    lse(%lse : tensor<1x2x61xf32>)
    {query_block = 4 : i64}
    -> tensor<1x2x61x32xf16>, tensor<1x2x61xf32>
  return
}
