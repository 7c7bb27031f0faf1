// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: parameters.

// CHECK-LABEL: func.func @defaults(
// CHECK: pisa.build_pyramid <>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @defaults(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @one(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @one(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @given_defaults_are_not_printed(
// CHECK: pisa.build_pyramid <>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @given_defaults_are_not_printed(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<block_size = 64, fanout = 2, topk = 16, leaf_atoms = 4, query_block = 1, sink_blocks = 1, local_blocks = 2, causal = true> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @in_another_order(
// CHECK: pisa.build_pyramid <topk = 8>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @in_another_order(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 8, fanout = 2> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @rerank_none(
// CHECK: pisa.build_pyramid <topk = 4, rerank = 0>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @rerank_none(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4, rerank = 0> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @beam_equal_to_topk(
// CHECK: pisa.build_pyramid <topk = 4, beam = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @beam_equal_to_topk(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4, beam = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @all(
// CHECK: pisa.build_pyramid <block_size = 32, fanout = 4, topk = 8, beam = 16, rerank = 12, leaf_atoms = 2, query_block = 4, sink_blocks = 2, local_blocks = 3, causal = false, summary_dtype = f32>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xbf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x11x64xf32>)
// CHECK-SAME: -> tensor<1x2x11x64xf32>
func.func @all(
    %k: tensor<1x2x256x64xbf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x11x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<block_size = 32, fanout = 4, topk = 8, beam = 16, rerank = 12, leaf_atoms = 2, query_block = 4, sink_blocks = 2, local_blocks = 3, causal = false, summary_dtype = f32> ins(%k :
      tensor<1x2x256x64xbf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x11x64xf32>)
    -> tensor<1x2x11x64xf32>
  return
}

// CHECK-LABEL: func.func @lowering_config(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>}
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @lowering_config(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    {lowering_config = #pisa.lowering_config<query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>}
    -> tensor<1x2x7x64xf32>
  return
}
