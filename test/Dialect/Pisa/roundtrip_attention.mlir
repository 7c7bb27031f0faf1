// RUN: pisa-opt %s | pisa-opt | FileCheck %s
// RUN: pisa-opt %s --mlir-print-op-generic | pisa-opt | FileCheck %s

// A round trip in the pretty and in the generic form: attention.

// CHECK-LABEL: func.func @f32(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>
func.func @f32(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// CHECK-LABEL: func.func @bf16(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x64xbf16>)
// CHECK-SAME: -> tensor<1x4x200x64xbf16>
func.func @bf16(
    %q: tensor<1x4x200x64xbf16>,
    %k: tensor<1x2x256x64xbf16>,
    %v: tensor<1x2x256x64xbf16>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x64xbf16>) {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xbf16>)
    -> tensor<1x4x200x64xbf16>
  return
}

// CHECK-LABEL: func.func @dynamic(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<?x4x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x7xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<?xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<?x4x?x64xf16>)
// CHECK-SAME: -> tensor<?x4x?x64xf16>
func.func @dynamic(
    %q: tensor<?x4x?x64xf16>,
    %k: tensor<?x2x?x64xf16>,
    %v: tensor<?x2x?x64xf16>,
    %idx: tensor<?x2x?x7xi32>,
    %n: tensor<?xi32>,
    %scale: f32,
    %o: tensor<?x4x?x64xf16>) {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<?x4x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x7xi32>)
    k_len(%n : tensor<?xi32>)
    scale(%scale)
    outs(%o : tensor<?x4x?x64xf16>)
    -> tensor<?x4x?x64xf16>
  return
}

// CHECK-LABEL: func.func @start_and_lse(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: q_start({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: lse({{[^:)]*}} : tensor<1x4x200xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
func.func @start_and_lse(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return
}

// CHECK-LABEL: func.func @packed_and_paged(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<2xi32>)
// CHECK-SAME: cu_seqlens_q({{[^:)]*}} : tensor<3xi32>)
// CHECK-SAME: cu_seqlens_k({{[^:)]*}} : tensor<3xi32>)
// CHECK-SAME: page_table({{[^:)]*}} : tensor<2x5xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>
func.func @packed_and_paged(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<2xi32>,
    %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>,
    %pages: tensor<2x5xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<2xi32>)
    cu_seqlens_q(%cu_q : tensor<3xi32>)
    cu_seqlens_k(%cu_k : tensor<3xi32>)
    page_table(%pages : tensor<2x5xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// CHECK-LABEL: func.func @not_causal(
// CHECK: pisa.attention <topk = 4, local_blocks = 0, causal = false>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>
func.func @not_causal(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  %0 = pisa.attention #pisa.params<topk = 4, causal = false, local_blocks = 0> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// CHECK-LABEL: func.func @no_keys(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : tensor<1x4x200x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x32xf32>, tensor<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : tensor<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : tensor<1x4x200x32xf32>)
// CHECK-SAME: -> tensor<1x4x200x32xf32>
func.func @no_keys(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x0x64xf32>,
    %v: tensor<1x2x0x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x0x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// CHECK-LABEL: func.func @memrefs(
// CHECK: pisa.attention <topk = 4>
// CHECK-SAME: ins({{[^:)]*}} : memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
// CHECK-SAME: k_len({{[^:)]*}} : memref<1xi32>)
// CHECK-SAME: scale({{[^:)]*}})
// CHECK-SAME: outs({{[^:)]*}} : memref<1x4x200x32xf32>)
// CHECK-SAME: lse({{[^:)]*}} : memref<1x4x200xf32>)
func.func @memrefs(
    %q: memref<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %v: memref<1x2x256x32xf32>,
    %idx: memref<1x2x200x4xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %o: memref<1x4x200x32xf32>,
    %lse: memref<1x4x200xf32>) {
  pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%o : memref<1x4x200x32xf32>)
    lse(%lse : memref<1x4x200xf32>)
  return
}
