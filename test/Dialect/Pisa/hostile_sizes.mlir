// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Sizes near the limits of int64 are refused or accepted, and crash nothing.

func.func @f(
    %k: tensor<1x2x9223372036854775807x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // keys
  // expected-error @below {{'pisa.build_pyramid' op expected at most 2147483647 keys in a sequence, but got 9223372036854775807}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x9223372036854775807x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x9223372036854775807x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // queries
  // expected-error @below {{'pisa.attention' op expected dimension 2 of 'indices' [B, Hkv, NQ, K] to be 9223372036854775807, but got 200}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x9223372036854775807x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x9223372036854775807x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // query blocks
  // expected-error @below {{'pisa.attention' op expected dimension 2 of 'indices' [B, Hkv, NQ, K] to be 4611686018427387904, but got 200}}
  %0 = pisa.attention #pisa.params<topk = 4, query_block = 2> ins(%q, %k, %v, %idx :
      tensor<1x4x9223372036854775807x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x9223372036854775807x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // heads
  // expected-error @below {{'pisa.attention' op expected the number of query heads to be a positive multiple of the number of kv heads, but got 9223372036854775807 and 2}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x9223372036854775807x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<9223372036854775807x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // batch
  // expected-error @below {{'pisa.attention' op expected dimension 0 of 'k' [B, Hkv, Tk, D] to be 9223372036854775807, but got 1}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<9223372036854775807x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  // width of the lists
  // expected-error @below {{'pisa.route' op expected dimension 3 of 'indices' [B, Hkv, NQ, K] to be 4096, but got 4}}
  %0 = pisa.route #pisa.params<topk = 4096> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x0x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  // no keys
  // expected-error @below {{'pisa.route' op expected dimension 2 of 'pyramid' [B, Hkv, nodes, D] to be 0, but got 7}}
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x0x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}
