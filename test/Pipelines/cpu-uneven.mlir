// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s

// The whole pipeline: only the LLVM dialect is left.
// Sizes that no vector width divides: D = 24, Dv = 8, C = 20, g = 3, G = 7, Q = 3.

// CHECK-NOT: {{ (pisa|linalg|tensor|bufferization|affine|vector|memref|scf|cf|arith|math|func|builtin)\.}}
func.func @attention(
    %q: tensor<1x7x100x24xf16>,
    %k: tensor<1x1x333x24xf16>,
    %v: tensor<1x1x333x8xf16>,
    %idx: tensor<1x1x34x5xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x7x100x8xf16>)
    -> tensor<1x7x100x8xf16> {
  %0 = pisa.attention #pisa.params<topk = 4, block_size = 20, fanout = 3, query_block = 3> ins(%q, %k, %v, %idx :
      tensor<1x7x100x24xf16>, tensor<1x1x333x24xf16>, tensor<1x1x333x8xf16>, tensor<1x1x34x5xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x7x100x8xf16>)
    -> tensor<1x7x100x8xf16>
  return %0 : tensor<1x7x100x8xf16>
}

func.func @route(
    %q: tensor<1x7x100x24xf16>,
    %k: tensor<1x1x333x24xf16>,
    %pyr: tensor<1x1x?x24xf16>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x1x34x4xi32>)
    -> tensor<1x1x34x4xi32> {
  %0 = pisa.route #pisa.params<topk = 4, block_size = 20, fanout = 3, query_block = 3> ins(%q, %k, %pyr :
      tensor<1x7x100x24xf16>, tensor<1x1x333x24xf16>, tensor<1x1x?x24xf16>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x1x34x4xi32>)
    -> tensor<1x1x34x4xi32>
  return %0 : tensor<1x1x34x4xi32>
}

func.func @build(
    %k: tensor<1x1x333x24xf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x1x?x24xf16>)
    -> tensor<1x1x?x24xf16> {
  %0 = pisa.build_pyramid #pisa.params<topk = 4, block_size = 20, fanout = 3> ins(%k :
      tensor<1x1x333x24xf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x1x?x24xf16>)
    -> tensor<1x1x?x24xf16>
  return %0 : tensor<1x1x?x24xf16>
}
