// RUN: pisa-opt %s -pisa-set-lowering-config="target=nvptx partial-bytes=100000000" \
// RUN:   | FileCheck %s
// RUN: pisa-opt %s -pisa-set-lowering-config="target=nvptx" \
// RUN:   | FileCheck %s --check-prefix=TILES

// Attention goes by key block with scratch for it, but not where the rows of a
// query fill a matrix product, nor where they fill half of one and queries agree.

// TILES-NOT: chunk

// CHECK-LABEL: func.func @few(
// CHECK: pisa.attention
// CHECK-SAME: chunk = {{[0-9]+}}
// CHECK-LABEL: func.func @sixteen(
// CHECK-NOT: chunk
// CHECK-LABEL: func.func @eight(
// CHECK: pisa.attention
// CHECK-SAME: chunk = {{[0-9]+}}
// CHECK-LABEL: func.func @agree(
// CHECK-NOT: chunk
// CHECK-LABEL: func.func @differ(
// CHECK: pisa.attention
// CHECK-SAME: chunk = {{[0-9]+}}

func.func @few(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %i: tensor<1x1x?x4xi32>,
    %n: tensor<1xi32>, %s: f32, %o: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %k, %i : tensor<1x4x?x64xbf16>,
         tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x4xi32>)
         k_len(%n : tensor<1xi32>) scale(%s) outs(%o : tensor<1x4x?x64xbf16>) {pisa.union_hint = 1.0 : f32}
         -> tensor<1x4x?x64xbf16>
  return %0 : tensor<1x4x?x64xbf16>
}

func.func @sixteen(%q: tensor<1x16x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %i: tensor<1x1x?x4xi32>,
    %n: tensor<1xi32>, %s: f32, %o: tensor<1x16x?x64xbf16>) -> tensor<1x16x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %k, %i : tensor<1x16x?x64xbf16>,
         tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x4xi32>)
         k_len(%n : tensor<1xi32>) scale(%s) outs(%o : tensor<1x16x?x64xbf16>)
         -> tensor<1x16x?x64xbf16>
  return %0 : tensor<1x16x?x64xbf16>
}

func.func @eight(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %i: tensor<1x1x?x4xi32>,
    %n: tensor<1xi32>, %s: f32, %o: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %k, %i : tensor<1x8x?x64xbf16>,
         tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x4xi32>)
         k_len(%n : tensor<1xi32>) scale(%s) outs(%o : tensor<1x8x?x64xbf16>)
         -> tensor<1x8x?x64xbf16>
  return %0 : tensor<1x8x?x64xbf16>
}

func.func @agree(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %i: tensor<1x1x?x4xi32>,
    %n: tensor<1xi32>, %s: f32, %o: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %k, %i : tensor<1x8x?x64xbf16>,
         tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x4xi32>)
         k_len(%n : tensor<1xi32>) scale(%s) outs(%o : tensor<1x8x?x64xbf16>) {pisa.union_hint = 2.5 : f32}
         -> tensor<1x8x?x64xbf16>
  return %0 : tensor<1x8x?x64xbf16>
}

func.func @differ(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %i: tensor<1x1x?x4xi32>,
    %n: tensor<1xi32>, %s: f32, %o: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %k, %i : tensor<1x8x?x64xbf16>,
         tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x4xi32>)
         k_len(%n : tensor<1xi32>) scale(%s) outs(%o : tensor<1x8x?x64xbf16>) {pisa.union_hint = 5.0 : f32}
         -> tensor<1x8x?x64xbf16>
  return %0 : tensor<1x8x?x64xbf16>
}
