// RUN: pisa-opt %s -pisa-verify-level=level=phase -verify-diagnostics -split-input-file

// What does not belong to level phase.

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // a problem
  // expected-error @below {{'pisa.attention' op does not belong to level 'phase'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %v: tensor<1x1x256x32xf32>,
    %n: tensor<1xi32>,
    %block: index,
    %packed: tensor<64x32xf32>) {
  // a tile op
  // expected-error @below {{'pisa.pack_values' op does not belong to level 'phase'}}
  %0 = pisa.pack_values ins(%v :
      tensor<1x1x256x32xf32>)
    k_len(%n : tensor<1xi32>)
    block(%block)
    outs(%packed : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return
}

// -----

func.func @f() {
  // LLVM
  // expected-error @below {{'llvm.mlir.constant' op does not belong to level 'phase'}}
  %0 = llvm.mlir.constant(1 : i64) : i64
  return
}
