// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: route.

// CHECK-LABEL: func.func @f32(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @f32(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @f16(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x7x64xf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @f16(
    %q: tensor<1x4x200x64xf16>,
    %k: tensor<1x2x256x64xf16>,
    %pyr: tensor<1x2x7x64xf16>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x7x64xf16>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @bf16_summaries_in_f32(
// CHECK: pisa.route <topk = 4, summary_dtype = f32>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @bf16_summaries_in_f32(
    %q: tensor<1x4x200x64xbf16>,
    %k: tensor<1x2x256x64xbf16>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4, summary_dtype = f32> ins(%q, %k, %pyr :
      tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @dynamic(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<?xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x2x?x4xi32>)
// CHECK-SAME: -> tensor<?x2x?x4xi32>
func.func @dynamic(
    %q: tensor<?x4x?x64xf32>,
    %k: tensor<?x2x?x64xf32>,
    %pyr: tensor<?x2x?x64xf32>,
    %n: tensor<?xi32>,
    %scale: f32,
    %idx: tensor<?x2x?x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
    k_len(%n : tensor<?xi32>)
    scale(%scale)
    outs(%idx : tensor<?x2x?x4xi32>)
    -> tensor<?x2x?x4xi32>
  return
}

// CHECK-LABEL: func.func @prescore(
// CHECK: pisa.route <topk = 4, rerank = 0>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: atoms({{[^:)]*}} : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @prescore(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4, rerank = 0> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @all_results(
// CHECK: pisa.route <topk = 4, rerank = 6>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: atoms({{[^:)]*}} : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: count({{[^:)]*}} : tensor<1x2x200xi32>)
// CHECK-SAME: scores({{[^:)]*}} : tensor<1x2x200x4xf32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
func.func @all_results(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %cnt: tensor<1x2x200xi32>,
    %sc: tensor<1x2x200x4xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4, rerank = 6> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4xf32>
  return
}

// CHECK-LABEL: func.func @scores_alone(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: scores({{[^:)]*}} : tensor<1x2x200x4xf32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
func.func @scores_alone(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %sc: tensor<1x2x200x4xf32>) {
  %0:2 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    scores(%sc : tensor<1x2x200x4xf32>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf32>
  return
}

// CHECK-LABEL: func.func @query_blocks(
// CHECK: pisa.route <topk = 4, query_block = 32>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x4xi32>)
// CHECK-SAME: -> tensor<1x2x7x4xi32>
func.func @query_blocks(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x7x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4, query_block = 32> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x7x4xi32>)
    -> tensor<1x2x7x4xi32>
  return
}

// CHECK-LABEL: func.func @packed_and_paged(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x9x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<2xi32>)
// CHECK-SAME: cu_seqlens_q({{[^:)]*}} : tensor<3xi32>)
// CHECK-SAME: cu_seqlens_k({{[^:)]*}} : tensor<3xi32>)
// CHECK-SAME: page_table({{[^:)]*}} : tensor<2x5xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x200x4xi32>)
// CHECK-SAME: -> tensor<1x2x200x4xi32>
func.func @packed_and_paged(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x9x64xf32>,
    %n: tensor<2xi32>,
    %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>,
    %pages: tensor<2x5xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x9x64xf32>)
    k_len(%n : tensor<2xi32>)
    cu_seqlens_q(%cu_q : tensor<3xi32>)
    cu_seqlens_k(%cu_k : tensor<3xi32>)
    page_table(%pages : tensor<2x5xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// CHECK-LABEL: func.func @more_queries_than_keys_with_start(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x300x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x300x4xi32>)
// CHECK-SAME: -> tensor<1x2x300x4xi32>
func.func @more_queries_than_keys_with_start(
    %q: tensor<1x4x300x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x300x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x300x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x300x4xi32>)
    -> tensor<1x2x300x4xi32>
  return
}

// CHECK-LABEL: func.func @more_queries_than_keys_not_causal(
// CHECK: pisa.route <topk = 4, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x300x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x300x4xi32>)
// CHECK-SAME: -> tensor<1x2x300x4xi32>
func.func @more_queries_than_keys_not_causal(
    %q: tensor<1x4x300x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x300x4xi32>) {
  %0 = pisa.route #pisa.params<topk = 4, causal = false> ins(%q, %k, %pyr :
      tensor<1x4x300x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x300x4xi32>)
    -> tensor<1x2x300x4xi32>
  return
}

// CHECK-LABEL: func.func @memrefs(
// CHECK: pisa.route <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x7x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x2x200x4xi32>)
func.func @memrefs(
    %q: memref<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %pyr: memref<1x2x7x64xf32>,
    %n: memref<1xi32>,
    %scale: f32,
    %idx: memref<1x2x200x4xi32>) {
  pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x7x64xf32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%idx : memref<1x2x200x4xi32>)
  return
}
