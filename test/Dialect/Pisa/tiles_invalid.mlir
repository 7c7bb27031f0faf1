// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// What the verifiers of the tile ops refuse.

func.func @f(
    %q: tensor<2x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x2x64xf32>) {
  // pack_queries, two sequences
  // expected-error @below {{'pisa.pack_queries' op expected dimension 0 of 'q' of one sequence to be 1, but got 2}}
  %0 = pisa.pack_queries ins(%q :
      tensor<2x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x2x64xf32>)
    {query_block = 1 : i64}
    -> tensor<64x2x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x2x64xf32>) {
  // pack_queries, query_block
  // expected-error @below {{'pisa.pack_queries' op expected 'query_block' to be in [1, 1048576], but got 0}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x2x64xf32>)
    {query_block = 0 : i64}
    -> tensor<64x2x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x1x64xf32>) {
  // pack_queries, too few rows
  // expected-error @below {{'pisa.pack_queries' op expected 'packed' to hold the 2 rows of a query block, but got 1}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x1x64xf32>)
    {query_block = 1 : i64}
    -> tensor<64x1x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x4x64xf32>) {
  // pack_queries, query blocks
  // expected-error @below {{'pisa.pack_queries' op expected dimension 0 of 'packed' [nq, M, D] to be 32, but got 64}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x4x64xf32>)
    {query_block = 2 : i64}
    -> tensor<64x4x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x2x64x64xf32>,
    %scale: f32,
    %packed: tensor<64x?x64xf32>) {
  // pack_queries, dynamic rows
  // expected-error @below {{'pisa.pack_queries' op expected dimension 1 of 'packed' to be static and positive, but got a dynamic one}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x2x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<64x?x64xf32>)
    {query_block = 1 : i64}
    -> tensor<64x?x64xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  // pack_columns, two heads
  // expected-error @below {{'pisa.pack_columns' op expected dimension 1 of 'source' of one task to be 1, but got 2}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x48xf32>,
    %bias: tensor<48xf32>) {
  // pack_columns, too few columns
  // expected-error @below {{'pisa.pack_columns' op expected at least 64 columns, one for each row of a block, but got 48}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x48xf32>, tensor<48xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<64x48xf32>, tensor<48xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<32xf32>) {
  // pack_columns, bias
  // expected-error @below {{'pisa.pack_columns' op expected dimension 0 of 'bias' [Cols] to be 64, but got 32}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<32xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<64x64xf32>, tensor<32xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<32x64xf32>,
    %bias: tensor<64xf32>) {
  // pack_columns, rows of the columns
  // expected-error @below {{'pisa.pack_columns' op expected dimension 0 of 'columns' [D, Cols] to be 64, but got 32}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<32x64xf32>, tensor<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<32x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  // pack_columns, group
  // expected-error @below {{'pisa.pack_columns' op expected 'group' to be in [1, 1048576], but got 0}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 0 : i64, nodes = 1 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  // pack_columns, nodes
  // expected-error @below {{'pisa.pack_columns' op expected 'nodes' to be in [1, 1048576], but got -1}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 64 : i64, nodes = -1 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x?xf32>,
    %bias: tensor<64xf32>) {
  // pack_columns, dynamic columns
  // expected-error @below {{'pisa.pack_columns' op expected dimension 1 of 'columns' to be static and positive, but got a dynamic one}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x?xf32>, tensor<64xf32>)
    {group = 64 : i64, nodes = 1 : i64}
    -> tensor<64x?xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x3x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x80xf32>,
    %bias: tensor<80xf32>) {
  // pack_atoms, atoms do not divide the block
  // expected-error @below {{'pisa.pack_atoms' op expected the number of atoms to divide 'block_size' = 64, but got 3}}
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x3x64xf32>, tensor<1x1x4xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x80xf32>, tensor<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
    -> tensor<64x80xf32>, tensor<80xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x4x64xf32>,
    %outlier: tensor<1x1x5xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x80xf32>,
    %bias: tensor<80xf32>) {
  // pack_atoms, outlier
  // expected-error @below {{'pisa.pack_atoms' op expected dimension 2 of 'outlier' [1, 1, leaves] to be 4, but got 5}}
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x5xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x80xf32>, tensor<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
    -> tensor<64x80xf32>, tensor<80xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x4x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  // pack_atoms, too few columns
  // expected-error @below {{'pisa.pack_atoms' op expected at least 80 columns, one for each row of a block, but got 64}}
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x?x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x80xf32>,
    %bias: tensor<80xf32>) {
  // pack_atoms, dynamic number of atoms
  // expected-error @below {{'pisa.pack_atoms' op expected dimension 3 of 'atoms' to be static and positive, but got a dynamic one}}
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x?x64xf32>, tensor<1x1x4xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x80xf32>, tensor<80xf32>)
    {block_size = 64 : i64, nodes = 16 : i64}
    -> tensor<64x80xf32>, tensor<80xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x1x256x64xf32>,
    %atoms: tensor<1x1x4x4x64xf32>,
    %outlier: tensor<1x1x4xi32>,
    %n: tensor<1xi32>,
    %block: index,
    %columns: tensor<64x80xf32>,
    %bias: tensor<80xf32>) {
  // pack_atoms, block_size
  // expected-error @below {{'pisa.pack_atoms' op expected 'block_size' to be in [1, 1048576], but got 0}}
  %0:2 = pisa.pack_atoms ins(%k, %atoms, %outlier :
      tensor<1x1x256x64xf32>, tensor<1x1x4x4x64xf32>, tensor<1x1x4xi32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%columns, %bias : tensor<64x80xf32>, tensor<80xf32>)
    {block_size = 0 : i64, nodes = 16 : i64}
    -> tensor<64x80xf32>, tensor<80xf32>
  return
}

// -----

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x64xf32>) {
  // pack_values, head dimension
  // expected-error @below {{'pisa.pack_values' op expected dimension 1 of 'packed' [C, Dv] to be 32, but got 64}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  return
}

// -----

func.func @f(
    %v: tensor<1x2x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  // pack_values, two heads
  // expected-error @below {{'pisa.pack_values' op expected dimension 1 of 'v' of one task to be 1, but got 2}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x2x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return
}

// -----

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<?x32xf32>) {
  // pack_values, dynamic rows
  // expected-error @below {{'pisa.pack_values' op expected dimension 0 of 'packed' to be static and positive, but got a dynamic one}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<?x32xf32>)
    -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%lists: tensor<1x1x64x16xi32>, %after: index, %limit: index) {
  // next_block, divisor
  // expected-error @below {{'pisa.next_block' op expected 'divisor' to be in [1, 1048576], but got 0}}
  %0 = pisa.next_block %lists after %after limit %limit
    {divisor = 0 : i64} : tensor<1x1x64x16xi32>
  return
}

// -----

func.func @f(%lists: tensor<1x1x64x?xi32>, %after: index, %limit: index) {
  // next_block, a dynamic width
  // expected-error @below {{'pisa.next_block' op expected dimension 3 of 'lists' to be static and positive, but got a dynamic one}}
  %0 = pisa.next_block %lists after %after limit %limit
    {divisor = 1 : i64} : tensor<1x1x64x?xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %level: index,
    %children: tensor<1x1x64x4xi32>) {
  // expand_nodes, width of the children
  // expected-error @below {{'pisa.expand_nodes' op expected dimension 3 of 'children' [1, 1, nq, g n] to be 8, but got 4}}
  %0 = pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : tensor<1x1x64x4xi32>)
    -> tensor<1x1x64x4xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x2x64x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %level: index,
    %children: tensor<1x1x64x8xi32>) {
  // expand_nodes, two heads
  // expected-error @below {{'pisa.expand_nodes' op expected dimension 1 of 'nodes' of one task to be 1, but got 2}}
  %0 = pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      tensor<1x2x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32>
  return
}

// -----

func.func @f(
    %nodes: tensor<1x1x64x4xi32>,
    %n: tensor<1xi32>,
    %first: index,
    %level: index,
    %children: tensor<1x1x64x8xi32>) {
  // expand_nodes, no q_start
  // expected-error @below {{'pisa.expand_nodes' op expected 'q_start' in causal attention, but got none}}
  %0 = pisa.expand_nodes #pisa.params<topk = 4> ins(%nodes :
      tensor<1x1x64x4xi32>)
    k_len(%n : tensor<1xi32>)
    query_offset(%first)
    level(%level)
    outs(%children : tensor<1x1x64x8xi32>)
    -> tensor<1x1x64x8xi32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x3x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  // score_block, row_tile does not divide
  // expected-error @below {{'pisa.score_block' op expected 'row_tile' to divide the 3 rows of 'queries', but got 2}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x3x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  // score_block, row_tile
  // expected-error @below {{'pisa.score_block' op expected 'row_tile' to be in [1, 1048576], but got 0}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 0 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  // score_block, column_tile
  // expected-error @below {{'pisa.score_block' op expected 'column_tile' to be in [1, 1048576], but got -64}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = -64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x4xf32>) {
  // score_block, scores
  // expected-error @below {{'pisa.score_block' op expected dimension 3 of 'scores' [1, 1, nq, n] to be 8, but got 4}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x4xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x4xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x32xf32>,
    %bias: tensor<32xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  // score_block, columns
  // expected-error @below {{'pisa.score_block' op expected at least 64 columns, one for each row of a block, but got 32}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x32xf32>, tensor<32xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x?x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %lists: tensor<1x1x64x8xi32>,
    %block: index,
    %n: index,
    %scores: tensor<1x1x64x8xf32>) {
  // score_block, dynamic rows
  // expected-error @below {{'pisa.score_block' op expected dimension 1 of 'queries' to be static and positive, but got a dynamic one}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x?x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 64 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 1 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
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
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, row_tile does not divide
  // expected-error @below {{'pisa.attend_block' op expected 'row_tile' to divide the 2 rows of 'queries', but got 4}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 4 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
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
    %first: index,
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, no q_start
  // expected-error @below {{'pisa.attend_block' op expected 'q_start' in causal attention, but got none}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %values: tensor<48x32xf32>,
    %lists: tensor<1x1x64x4xi32>,
    %block: index,
    %start: tensor<1xi32>,
    %first: index,
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, values of no part
  // expected-error @below {{'pisa.attend_block' op expected the rows of 'values' to divide C = 64, but got 48}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<48x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
  return
}

// -----

func.func @f(
    %queries: tensor<64x2x64xf32>,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>,
    %values: tensor<32x32xf32>,
    %lists: tensor<1x1x64x4xi32>,
    %block: index,
    %start: tensor<1xi32>,
    %first: index,
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, part
  // expected-error @below {{'pisa.attend_block' op expected 'part' to be one of 2, but got 2}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<32x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, part = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>
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
    %acc: tensor<64x2x64xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, acc
  // expected-error @below {{'pisa.attend_block' op expected dimension 2 of 'acc' [nq, M, Dv] to be 32, but got 64}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x64xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x64xf32>, tensor<64x2xf32>, tensor<64x2xf32>
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
    %acc: tensor<64x2x32xf32>,
    %max: tensor<32x2xf32>,
    %sum: tensor<64x2xf32>) {
  // attend_block, max
  // expected-error @below {{'pisa.attend_block' op expected dimension 0 of 'max' [nq, M] to be 64, but got 32}}
  %0:3 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<32x2xf32>, tensor<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<32x2xf32>, tensor<64x2xf32>
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
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: memref<64x2xf32>) {
  // attend_block, a mix of tensors and memrefs
  // expected-error @below {{'pisa.attend_block' op expected operands to be all tensors or all memrefs, but got both}}
  %0:2 = pisa.attend_block #pisa.params<topk = 4> ins(%queries, %columns, %bias, %values, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<1x1x64x4xi32>)
    block(%block)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    outs(%acc, %max, %sum : tensor<64x2x32xf32>, tensor<64x2xf32>, memref<64x2xf32>)
    {column_tile = 64 : i64, heads = 2 : i64, row_tile = 2 : i64}
    -> tensor<64x2x32xf32>, tensor<64x2xf32>
  return
}

// -----

func.func @f(
    %acc: tensor<32x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>,
    %o: tensor<1x2x64x32xf32>) {
  // finish_attention, acc
  // expected-error @below {{'pisa.finish_attention' op expected dimension 0 of 'acc' [nq, M, Dv] to be 64, but got 32}}
  %0 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<32x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    outs(%o : tensor<1x2x64x32xf32>)
    {query_block = 1 : i64}
    -> tensor<1x2x64x32xf32>
  return
}

// -----

func.func @f(
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x4xf32>,
    %o: tensor<1x2x64x32xf32>) {
  // finish_attention, sum
  // expected-error @below {{'pisa.finish_attention' op expected dimension 1 of 'sum' [nq, M] to be 2, but got 4}}
  %0 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x4xf32>)
    outs(%o : tensor<1x2x64x32xf32>)
    {query_block = 1 : i64}
    -> tensor<1x2x64x32xf32>
  return
}

// -----

func.func @f(
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>,
    %o: tensor<2x2x64x32xf32>) {
  // finish_attention, two sequences
  // expected-error @below {{'pisa.finish_attention' op expected dimension 0 of 'o' of one sequence to be 1, but got 2}}
  %0 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    outs(%o : tensor<2x2x64x32xf32>)
    {query_block = 1 : i64}
    -> tensor<2x2x64x32xf32>
  return
}

// -----

func.func @f(
    %acc: tensor<64x2x32xf32>,
    %max: tensor<64x2xf32>,
    %sum: tensor<64x2xf32>,
    %o: tensor<1x2x64x32xf32>,
    %lse: tensor<1x2x32xf32>) {
  // finish_attention, lse
  // expected-error @below {{'pisa.finish_attention' op expected dimension 2 of 'lse' [1, G, T] to be 64, but got 32}}
  %0:2 = pisa.finish_attention ins(%acc, %max, %sum :
      tensor<64x2x32xf32>, tensor<64x2xf32>, tensor<64x2xf32>)
    outs(%o : tensor<1x2x64x32xf32>)
    lse(%lse : tensor<1x2x32xf32>)
    {query_block = 1 : i64}
    -> tensor<1x2x64x32xf32>, tensor<1x2x32xf32>
  return
}

// -----

func.func @f(
    %lists: tensor<1x1x16x8xi32>,
    %limit: index,
    %u: tensor<?xi32>,
    %c: tensor<1xi32>,
    %p: tensor<1x1x16x8xi32>) {
  // union_nodes, room for the union
  // expected-error @below {{'pisa.union_nodes' op expected dimension 0 of 'nodes' to be static}}
  %0:3 = pisa.union_nodes ins(%lists : tensor<1x1x16x8xi32>) limit(%limit)
    outs(%u, %c, %p : tensor<?xi32>, tensor<1xi32>, tensor<1x1x16x8xi32>)
    -> tensor<?xi32>, tensor<1xi32>, tensor<1x1x16x8xi32>
  return
}

// -----

func.func @f(
    %lists: tensor<1x1x16x8xi32>,
    %limit: index,
    %u: tensor<128xi32>,
    %c: tensor<1xi32>,
    %p: tensor<1x1x16x4xi32>) {
  // union_nodes, places
  // expected-error @below {{'pisa.union_nodes' op expected dimension 3 of 'places' [1, 1, nq, n] to be 8, but got 4}}
  %0:3 = pisa.union_nodes ins(%lists : tensor<1x1x16x8xi32>) limit(%limit)
    outs(%u, %c, %p : tensor<128xi32>, tensor<1xi32>, tensor<1x1x16x4xi32>)
    -> tensor<128xi32>, tensor<1xi32>, tensor<1x1x16x4xi32>
  return
}
