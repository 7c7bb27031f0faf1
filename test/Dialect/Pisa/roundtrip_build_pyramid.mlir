// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: build_pyramid.

// CHECK-LABEL: func.func @f32(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @f32(
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

// CHECK-LABEL: func.func @bf16(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xbf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xbf16>)
// CHECK-SAME: -> tensor<1x2x7x64xbf16>
func.func @bf16(
    %k: tensor<1x2x256x64xbf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xbf16>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xbf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xbf16>)
    -> tensor<1x2x7x64xbf16>
  return
}

// CHECK-LABEL: func.func @f16_summaries_in_f32(
// CHECK: pisa.build_pyramid <topk = 4, summary_dtype = f32>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf16>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>
func.func @f16_summaries_in_f32(
    %k: tensor<1x2x256x64xf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4, summary_dtype = f32> ins(%k :
      tensor<1x2x256x64xf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// CHECK-LABEL: func.func @dynamic(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<?x2x?x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<?xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x2x?x64xf32>)
// CHECK-SAME: -> tensor<?x2x?x64xf32>
func.func @dynamic(
    %k: tensor<?x2x?x64xf32>,
    %n: tensor<?xi32>,
    %pyr: tensor<?x2x?x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<?x2x?x64xf32>)
    k_len(%n : tensor<?xi32>)
    outs(%pyr : tensor<?x2x?x64xf32>)
    -> tensor<?x2x?x64xf32>
  return
}

// CHECK-LABEL: func.func @all_operands(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x7x64xf32>)
// CHECK-SAME: open_sums({{[^:)]*}} : tensor<1x2x3x64xf32>)
// CHECK-SAME: atoms({{[^:)]*}} : tensor<1x2x4x4x64xf32>)
// CHECK-SAME: outlier({{[^:)]*}} : tensor<1x2x4xi32>)
// CHECK-SAME: -> tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>
func.func @all_operands(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %open: tensor<1x2x3x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  %0:4 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    open_sums(%open : tensor<1x2x3x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x3x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x4xi32>
  return
}

// CHECK-LABEL: func.func @packed_and_paged(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<2xi32>)
// CHECK-SAME: cu_seqlens_k({{[^:)]*}} : tensor<3xi32>)
// CHECK-SAME: page_table({{[^:)]*}} : tensor<2x5xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x9x64xf32>)
// CHECK-SAME: -> tensor<1x2x9x64xf32>
func.func @packed_and_paged(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<2xi32>,
    %cu: tensor<3xi32>,
    %pages: tensor<2x5xi32>,
    %pyr: tensor<1x2x9x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<2xi32>)
    cu_seqlens_k(%cu : tensor<3xi32>)
    page_table(%pages : tensor<2x5xi32>)
    outs(%pyr : tensor<1x2x9x64xf32>)
    -> tensor<1x2x9x64xf32>
  return
}

// CHECK-LABEL: func.func @empty(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x2x0x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x2x0x64xf32>)
// CHECK-SAME: -> tensor<1x2x0x64xf32>
func.func @empty(
    %k: tensor<1x2x0x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x0x64xf32>) {
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x0x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x0x64xf32>)
    -> tensor<1x2x0x64xf32>
  return
}

// CHECK-LABEL: func.func @memrefs(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x2x256x64xf32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: outs({{[^:)]*}} : memref<1x2x7x64xf32>)
// CHECK-SAME: open_sums({{[^:)]*}} : memref<1x2x3x64xf32>)
func.func @memrefs(
    %k: memref<1x2x256x64xf32>,
    %n: memref<1xi32>,
    %pyr: memref<1x2x7x64xf32>,
    %open: memref<1x2x3x64xf32>) {
  pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      memref<1x2x256x64xf32>)
    k_len(%n : memref<1xi32>)
    outs(%pyr : memref<1x2x7x64xf32>)
    open_sums(%open : memref<1x2x3x64xf32>)
  return
}

// CHECK-LABEL: func.func @strided_memrefs(
// CHECK: pisa.build_pyramid <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<?xi32>)
// CHECK-SAME: outs({{[^:)]*}} : memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
func.func @strided_memrefs(
    %k: memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
    %n: memref<?xi32>,
    %pyr: memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>) {
  pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
    k_len(%n : memref<?xi32>)
    outs(%pyr : memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
  return
}
