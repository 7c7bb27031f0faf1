// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Each constraint of build_pyramid.

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<2xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // build-1, k_len
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 0 of 'k_len' [B] to be 1, but got 2}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<2xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<2x2x7x64xf32>) {
  // build-1, batch of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 0 of 'pyramid' [B, Hkv, nodes, D] to be 1, but got 2}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<2x2x7x64xf32>)
    -> tensor<2x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x1x7x64xf32>) {
  // build-1, heads of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 1 of 'pyramid' [B, Hkv, nodes, D] to be 2, but got 1}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x1x7x64xf32>)
    -> tensor<1x1x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pages: tensor<2x5xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // build-1, batch of the page table
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 0 of 'page_table' [B, P] to be 1, but got 2}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    page_table(%pages : tensor<2x5xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x2147483648x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x?x64xf32>) {
  // build-1, one key more than int32 counts
  // expected-error @below {{'pisa.build_pyramid' op expected at most 2147483647 keys in a sequence, but got 2147483648}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x2147483648x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x?x64xf32>)
    -> tensor<1x2x?x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x8x64xf32>) {
  // build-1, nodes of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 2 of 'pyramid' [B, Hkv, nodes, D] to be 7, but got 8}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x8x64xf32>)
    -> tensor<1x2x8x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x300x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x10x64xf32>) {
  // build-1, nodes of an uneven pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 2 of 'pyramid' [B, Hkv, nodes, D] to be 8, but got 10}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4, fanout = 3> ins(%k :
      tensor<1x2x300x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x10x64xf32>)
    -> tensor<1x2x10x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x32xf32>) {
  // build-1, head dimension of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 3 of 'pyramid' [B, Hkv, nodes, D] to be 64, but got 32}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x32xf32>)
    -> tensor<1x2x7x32xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x60xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x60xf32>) {
  // build-2, not a multiple of 8
  // expected-error @below {{'pisa.build_pyramid' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got 60}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x60xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x60xf32>)
    -> tensor<1x2x7x60xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x264xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x264xf32>) {
  // build-2, larger than 256
  // expected-error @below {{'pisa.build_pyramid' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got 264}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x264xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x264xf32>)
    -> tensor<1x2x7x264xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x0xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x0xf32>) {
  // build-2, zero
  // expected-error @below {{'pisa.build_pyramid' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got 0}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x0xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x0xf32>)
    -> tensor<1x2x7x0xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x?xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x?xf32>) {
  // build-2, a dynamic head dimension
  // expected-error @below {{'pisa.build_pyramid' op expected head dimension of 'k' to be a static multiple of 8 in [8, 256], but got a dynamic one}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x?xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x?xf32>)
    -> tensor<1x2x7x?xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x?x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // build-2, dynamic heads
  // expected-error @below {{'pisa.build_pyramid' op expected the numbers of heads to be static, but got a dynamic one}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x?x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x0x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x0x7x64xf32>) {
  // build-2, no heads
  // expected-error @below {{'pisa.build_pyramid' op expected the number of query heads to be a positive multiple of the number of kv heads, but got 0 and 0}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x0x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x0x7x64xf32>)
    -> tensor<1x0x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xbf16>) {
  // build-3, keys in float32
  // expected-error @below {{'pisa.build_pyramid' op expected element type of 'pyramid' to be 'f32', the summary type, but got 'bf16'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xbf16>)
    -> tensor<1x2x7x64xbf16>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xbf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // build-3, keys in bf16
  // expected-error @below {{'pisa.build_pyramid' op expected element type of 'pyramid' to be 'bf16', the summary type, but got 'f32'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xbf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xbf16>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xbf16>) {
  // build-3, summary_dtype
  // expected-error @below {{'pisa.build_pyramid' op expected element type of 'pyramid' to be 'f32', the summary type, but got 'bf16'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4, summary_dtype = f32> ins(%k :
      tensor<1x2x256x64xbf16>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xbf16>)
    -> tensor<1x2x7x64xbf16>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xbf16>,
    %outlier: tensor<1x2x4xi32>) {
  // build-3, atoms
  // expected-error @below {{'pisa.build_pyramid' op expected element type of 'atoms' to be 'f32', the summary type, but got 'bf16'}}
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xbf16>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x4x64xbf16>, tensor<1x2x4xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %open: tensor<1x2x4x64xf32>) {
  // build-4
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 2 of 'open_sums' [B, Hkv, levels, D] to be 3, but got 4}}
  %0:2 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    open_sums(%open : tensor<1x2x4x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>) {
  // build-5, atoms alone
  // expected-error @below {{'pisa.build_pyramid' op expected 'atoms' and 'outlier' to be given together, but got only 'atoms'}}
  %0:2 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x4x64xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  // build-5, outlier alone
  // expected-error @below {{'pisa.build_pyramid' op expected 'atoms' and 'outlier' to be given together, but got only 'outlier'}}
  %0:2 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x5x4x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  // build-5, leaves of the atoms
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 2 of 'atoms' [B, Hkv, leaves, A, D] to be 4, but got 5}}
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x5x4x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x5x4x64xf32>, tensor<1x2x4xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x5x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  // build-5, number of atoms
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 3 of 'atoms' [B, Hkv, leaves, A, D] to be 4, but got 5}}
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x4x5x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x5x64xf32>, tensor<1x2x4xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x4x64xf32>,
    %outlier: tensor<1x2x5xi32>) {
  // build-5, leaves of the outlier
  // expected-error @below {{'pisa.build_pyramid' op expected dimension 2 of 'outlier' [B, Hkv, leaves] to be 4, but got 5}}
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x4x4x64xf32>)
    outlier(%outlier : tensor<1x2x5xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x4x64xf32>, tensor<1x2x5xi32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>,
    %atoms: tensor<1x2x4x3x64xf32>,
    %outlier: tensor<1x2x4xi32>) {
  // build-5, A does not divide C
  // expected-error @below {{'pisa.build_pyramid' op expected 'leaf_atoms' to divide 'block_size' = 64, but got 3}}
  %0:3 = pisa.build_pyramid #pisa.params<topk = 4, leaf_atoms = 3> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    atoms(%atoms : tensor<1x2x4x3x64xf32>)
    outlier(%outlier : tensor<1x2x4xi32>)
    -> tensor<1x2x7x64xf32>, tensor<1x2x4x3x64xf32>, tensor<1x2x4xi32>
  return
}
