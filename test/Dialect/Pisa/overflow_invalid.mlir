// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Attributes whose product would overflow are refused one by one.

func.func @f(
    %src: tensor<1x1x256x64xf32>,
    %n: tensor<1xi32>,
    %row_base: index,
    %block: index,
    %keys_per_row: index,
    %columns: tensor<64x64xf32>,
    %bias: tensor<64xf32>) {
  // group * nodes = 2^64
  // expected-error @below {{'pisa.pack_columns' op expected 'group' to be in [1, 1048576], but got 4611686018427387904}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 4611686018427387904 : i64, nodes = 4 : i64}
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
  // nodes * group = 2^64
  // expected-error @below {{'pisa.pack_columns' op expected 'nodes' to be in [1, 1048576], but got 4611686018427387904}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 4 : i64, nodes = 4611686018427387904 : i64}
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
  // one past the largest
  // expected-error @below {{'pisa.pack_columns' op expected 'group' to be in [1, 1048576], but got 1048577}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 1048577 : i64, nodes = 1 : i64}
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
  // the largest: 2^40 rows
  // expected-error @below {{'pisa.pack_columns' op expected at least 1099511627776 columns, one for each row of a block, but got 64}}
  %0:2 = pisa.pack_columns ins(%src :
      tensor<1x1x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    row_base(%row_base)
    block(%block)
    keys_per_row(%keys_per_row)
    outs(%columns, %bias : tensor<64x64xf32>, tensor<64xf32>)
    {group = 1048576 : i64, nodes = 1048576 : i64}
    -> tensor<64x64xf32>, tensor<64xf32>
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
  // group * nodes = 2^64
  // expected-error @below {{'pisa.score_block' op expected 'group' to be in [1, 1048576], but got 4611686018427387904}}
  %0 = pisa.score_block ins(%queries, %columns, %bias, %lists :
      tensor<64x2x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<1x1x64x8xi32>)
    block(%block)
    num_queries(%n)
    outs(%scores : tensor<1x1x64x8xf32>)
    {column_tile = 64 : i64, group = 4611686018427387904 : i64, heads = 2 : i64, limit = 4 : i64, nodes = 4 : i64,
     query_block = 1 : i64, row_tile = 2 : i64}
    -> tensor<1x1x64x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x64x64xf32>,
    %scale: f32,
    %packed: tensor<1x4x64xf32>) {
  // query_block * heads = 2^64
  // expected-error @below {{'pisa.pack_queries' op expected 'query_block' to be in [1, 1048576], but got 4611686018427387904}}
  %0 = pisa.pack_queries ins(%q :
      tensor<1x4x64x64xf32>)
    scale(%scale)
    outs(%packed : tensor<1x4x64xf32>)
    {query_block = 4611686018427387904 : i64}
    -> tensor<1x4x64xf32>
  return
}
