// RUN: pisa-opt %s -convert-pisa-to-vector -verify-diagnostics -split-input-file

// Phases that convert as they are, but not for more than one sequence and kv head.

func.func @f(
    %k: memref<1x2x256x64xf32>,
    %n: memref<1xi32>,
    %first: index,
    %sums: memref<1x2x4x64xf32>) {
  // pool_leaves, two heads
  // expected-error @below {{'pisa.pool_leaves' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<1x2x256x64xf32>)
    k_len(%n : memref<1xi32>)
    leaf_offset(%first)
    outs(%sums : memref<1x2x4x64xf32>)
  return
}

// -----

func.func @f(
    %k: memref<2x1x256x64xf32>,
    %n: memref<2xi32>,
    %first: index,
    %sums: memref<2x1x4x64xf32>) {
  // pool_leaves, two sequences
  // expected-error @below {{'pisa.pool_leaves' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<2x1x256x64xf32>)
    k_len(%n : memref<2xi32>)
    leaf_offset(%first)
    outs(%sums : memref<2x1x4x64xf32>)
  return
}

// -----

func.func @f(
    %k: memref<?x1x256x64xf32>,
    %n: memref<?xi32>,
    %first: index,
    %sums: memref<?x1x4x64xf32>) {
  // pool_leaves, any number of sequences
  // expected-error @below {{'pisa.pool_leaves' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_leaves #pisa.params<topk = 4> ins(%k :
      memref<?x1x256x64xf32>)
    k_len(%n : memref<?xi32>)
    leaf_offset(%first)
    outs(%sums : memref<?x1x4x64xf32>)
  return
}

// -----

func.func @f(
    %k: memref<1x2x256x64xf32>,
    %leaves: memref<1x2x4x64xf32>,
    %n: memref<1xi32>,
    %sums: memref<1x2x7x64xf32>,
    %pyr: memref<1x2x7x64xf32>) {
  // pool_nodes, two heads
  // expected-error @below {{'pisa.pool_nodes' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      memref<1x2x256x64xf32>, memref<1x2x4x64xf32>)
    k_len(%n : memref<1xi32>)
    outs(%sums, %pyr : memref<1x2x7x64xf32>, memref<1x2x7x64xf32>)
  return
}

// -----

func.func @f(
    %k: memref<2x1x256x64xf32>,
    %leaves: memref<2x1x4x64xf32>,
    %n: memref<2xi32>,
    %sums: memref<2x1x7x64xf32>,
    %pyr: memref<2x1x7x64xf32>) {
  // pool_nodes, two sequences
  // expected-error @below {{'pisa.pool_nodes' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      memref<2x1x256x64xf32>, memref<2x1x4x64xf32>)
    k_len(%n : memref<2xi32>)
    outs(%sums, %pyr : memref<2x1x7x64xf32>, memref<2x1x7x64xf32>)
  return
}

// -----

func.func @f(
    %k: memref<?x1x256x64xf32>,
    %leaves: memref<?x1x4x64xf32>,
    %n: memref<?xi32>,
    %sums: memref<?x1x7x64xf32>,
    %pyr: memref<?x1x7x64xf32>) {
  // pool_nodes, any number of sequences
  // expected-error @below {{'pisa.pool_nodes' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.pool_nodes #pisa.params<topk = 4> ins(%k, %leaves :
      memref<?x1x256x64xf32>, memref<?x1x4x64xf32>)
    k_len(%n : memref<?xi32>)
    outs(%sums, %pyr : memref<?x1x7x64xf32>, memref<?x1x7x64xf32>)
  return
}

// -----

func.func @f(
    %nodes: memref<1x2x200x8xi32>,
    %scores: memref<1x2x200x8xf32>,
    %n: memref<1xi32>,
    %start: memref<1xi32>,
    %first: index,
    %kept: memref<1x2x200x4xi32>) {
  // select_topk, two heads
  // expected-error @below {{'pisa.select_topk' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      memref<1x2x200x8xi32>, memref<1x2x200x8xf32>)
    k_len(%n : memref<1xi32>)
    q_start(%start : memref<1xi32>)
    query_offset(%first)
    outs(%kept : memref<1x2x200x4xi32>)
  return
}

// -----

func.func @f(
    %nodes: memref<2x1x200x8xi32>,
    %scores: memref<2x1x200x8xf32>,
    %n: memref<2xi32>,
    %start: memref<2xi32>,
    %first: index,
    %kept: memref<2x1x200x4xi32>) {
  // select_topk, two sequences
  // expected-error @below {{'pisa.select_topk' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      memref<2x1x200x8xi32>, memref<2x1x200x8xf32>)
    k_len(%n : memref<2xi32>)
    q_start(%start : memref<2xi32>)
    query_offset(%first)
    outs(%kept : memref<2x1x200x4xi32>)
  return
}

// -----

func.func @f(
    %nodes: memref<?x1x200x8xi32>,
    %scores: memref<?x1x200x8xf32>,
    %n: memref<?xi32>,
    %start: memref<?xi32>,
    %first: index,
    %kept: memref<?x1x200x4xi32>) {
  // select_topk, any number of sequences
  // expected-error @below {{'pisa.select_topk' op expected a tile op of one task, whose columns are whole vectors of 16; run pisa-tile-and-fuse and pisa-decompose-tiles}}
  pisa.select_topk #pisa.params<topk = 4> ins(%nodes, %scores :
      memref<?x1x200x8xi32>, memref<?x1x200x8xf32>)
    k_len(%n : memref<?xi32>)
    q_start(%start : memref<?xi32>)
    query_offset(%first)
    outs(%kept : memref<?x1x200x4xi32>)
  return
}
