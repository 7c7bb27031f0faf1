// RUN: pisa-opt %s -pisa-set-lowering-config | FileCheck %s --check-prefixes=CHECK,V512
// RUN: pisa-opt %s -pisa-set-lowering-config=vector-bits=256 | FileCheck %s --check-prefixes=CHECK,V256
// RUN: pisa-opt %s -pisa-set-lowering-config=vector-bits=128 | FileCheck %s --check-prefixes=CHECK,V128

// Tiles by the heads of a group, the query block and the width of a vector: a row
// tile divides the rows of a query block into equal parts, and a query tile holds
// whole query blocks.

// CHECK-LABEL: func.func @one_head(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 1, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 1, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 1, column_tile = 16>
func.func @one_head(
    %q: tensor<1x2x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x2x200x64xf32>)
    -> tensor<1x2x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8> ins(%q, %k, %v, %idx :
      tensor<1x2x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x2x200x64xf32>)
    -> tensor<1x2x200x64xf32>
  return %0 : tensor<1x2x200x64xf32>
}

// CHECK-LABEL: func.func @two_heads(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 2, column_tile = 16>
func.func @two_heads(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return %0 : tensor<1x4x200x64xf32>
}

// CHECK-LABEL: func.func @six_heads(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 6, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 16>
func.func @six_heads(
    %q: tensor<1x12x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x12x200x64xf32>)
    -> tensor<1x12x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8> ins(%q, %k, %v, %idx :
      tensor<1x12x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x12x200x64xf32>)
    -> tensor<1x12x200x64xf32>
  return %0 : tensor<1x12x200x64xf32>
}

// CHECK-LABEL: func.func @seven_heads(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 16>
func.func @seven_heads(
    %q: tensor<1x14x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x14x200x64xf32>)
    -> tensor<1x14x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8> ins(%q, %k, %v, %idx :
      tensor<1x14x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x14x200x64xf32>)
    -> tensor<1x14x200x64xf32>
  return %0 : tensor<1x14x200x64xf32>
}

// CHECK-LABEL: func.func @eight_heads(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 4, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 16>
func.func @eight_heads(
    %q: tensor<1x16x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x200x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x16x200x64xf32>)
    -> tensor<1x16x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8> ins(%q, %k, %v, %idx :
      tensor<1x16x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x16x200x64xf32>)
    -> tensor<1x16x200x64xf32>
  return %0 : tensor<1x16x200x64xf32>
}

// CHECK-LABEL: func.func @query_blocks(
// CHECK: pisa.attention
// V512-SAME: query_tile = 64, leaf_tile = 256, row_tile = 6, column_tile = 64>
// V256-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 32>
// V128-SAME: query_tile = 64, leaf_tile = 256, row_tile = 3, column_tile = 16>
func.func @query_blocks(
    %q: tensor<1x8x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x13x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x8x200x64xf32>)
    -> tensor<1x8x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8, query_block = 16> ins(%q, %k, %v, %idx :
      tensor<1x8x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x13x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x8x200x64xf32>)
    -> tensor<1x8x200x64xf32>
  return %0 : tensor<1x8x200x64xf32>
}

// CHECK-LABEL: func.func @uneven_query_blocks(
// CHECK: pisa.attention
// V512-SAME: query_tile = 96, leaf_tile = 256, row_tile = 6, column_tile = 64>
// V256-SAME: query_tile = 96, leaf_tile = 256, row_tile = 3, column_tile = 32>
// V128-SAME: query_tile = 96, leaf_tile = 256, row_tile = 3, column_tile = 16>
func.func @uneven_query_blocks(
    %q: tensor<1x2x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x64xf32>,
    %idx: tensor<1x2x5x8xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x2x200x64xf32>)
    -> tensor<1x2x200x64xf32> {
  %0 = pisa.attention #pisa.params<topk = 8, query_block = 48> ins(%q, %k, %v, %idx :
      tensor<1x2x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x5x8xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x2x200x64xf32>)
    -> tensor<1x2x200x64xf32>
  return %0 : tensor<1x2x200x64xf32>
}
