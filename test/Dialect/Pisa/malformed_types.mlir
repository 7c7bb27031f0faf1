// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Operands of the wrong rank or element type.

func.func @f(
    %q: tensor<4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // rank of q
  // expected-error @below {{'pisa.attention' op operand #0 must be a rank-4 tensor or memref of f32, f16 or bf16, but got 'tensor<4x200x64xf32>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<*xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // unranked k
  // expected-error @below {{'pisa.attention' op operand #1 must be a rank-4 tensor or memref of f32, f16 or bf16, but got 'tensor<*xf32>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<*xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi32>,
    %pyr: tensor<2x7x64xf32>) {
  // rank of the pyramid
  // expected-error @below {{'pisa.build_pyramid' op operand #2 must be a rank-4 tensor or memref of f32, f16 or bf16, but got 'tensor<2x7x64xf32>'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<2x7x64xf32>)
    -> tensor<2x7x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<i32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // rank of k_len
  // expected-error @below {{'pisa.attention' op operand #4 must be a rank-1 tensor or memref of i32, but got 'tensor<i32>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<i32>)
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
    %atoms: tensor<1x2x4x64xf32>,
    %outlier: tensor<1x2x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>) {
  // rank of the atoms
  // expected-error @below {{'pisa.route' op operand #3 must be a rank-5 tensor or memref of f32, f16 or bf16, but got 'tensor<1x2x4x64xf32>'}}
  %0 = pisa.route #pisa.params<topk = 4, rerank = 0> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    atoms(%atoms, %outlier : tensor<1x2x4x64xf32>, tensor<1x2x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200x1xf32>) {
  // rank of lse
  // expected-error @below {{'pisa.attention' op operand #7 must be a rank-3 tensor or memref of f32, but got 'tensor<1x4x200x1xf32>'}}
  %0:2 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200x1xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200x1xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf64>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // q in f64
  // expected-error @below {{'pisa.attention' op operand #0 must be a rank-4 tensor or memref of f32, f16 or bf16, but got 'tensor<1x4x200x64xf64>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf64>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xi8>,
    %n: tensor<1xi32>,
    %pyr: tensor<1x2x7x64xf32>) {
  // k in i8
  // expected-error @below {{'pisa.build_pyramid' op operand #0 must be a rank-4 tensor or memref of f32, f16 or bf16, but got 'tensor<1x2x256x64xi8>'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xi8>)
    k_len(%n : tensor<1xi32>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi64>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // indices in i64
  // expected-error @below {{'pisa.attention' op operand #3 must be a rank-4 tensor or memref of i32, but got 'tensor<1x2x200x4xi64>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi64>)
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
    %idx: tensor<1x2x200x4xindex>) {
  // indices as index
  // expected-error @below {{'pisa.route' op operand #5 must be a rank-4 tensor or memref of i32, but got 'tensor<1x2x200x4xindex>'}}
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xindex>)
    -> tensor<1x2x200x4xindex>
  return
}

// -----

func.func @f(
    %k: tensor<1x2x256x64xf32>,
    %n: tensor<1xi64>,
    %pyr: tensor<1x2x7x64xf32>) {
  // k_len in i64
  // expected-error @below {{'pisa.build_pyramid' op operand #1 must be a rank-1 tensor or memref of i32, but got 'tensor<1xi64>'}}
  %0 = pisa.build_pyramid #pisa.params<topk = 4> ins(%k :
      tensor<1x2x256x64xf32>)
    k_len(%n : tensor<1xi64>)
    outs(%pyr : tensor<1x2x7x64xf32>)
    -> tensor<1x2x7x64xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>,
    %sc: tensor<1x2x200x4xf16>) {
  // scores in f16
  // expected-error @below {{'pisa.route' op operand #6 must be a rank-4 tensor or memref of f32, but got 'tensor<1x2x200x4xf16>'}}
  %0:2 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    scores(%sc : tensor<1x2x200x4xf16>)
    -> tensor<1x2x200x4xi32>, tensor<1x2x200x4xf16>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: vector<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // a vector of indices
  // expected-error @below {{'pisa.attention' op operand #3 must be a rank-4 tensor or memref of i32, but got 'vector<1x2x200x4xi32>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, vector<1x2x200x4xi32>)
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
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %pages: tensor<1x4xf32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  // a page table in f32
  // expected-error @below {{'pisa.attention' op operand #5 must be a rank-2 tensor or memref of i32, but got 'tensor<1x4xf32>'}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    page_table(%pages : tensor<1x4xf32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %scale: f64,
    %o: tensor<1x4x200x32xf32>) {
  // scale in f64
  // expected-error @+5 {{use of value '%scale' expects different type than prior uses: 'f32' vs 'f64'}}
  // expected-note @-4 {{prior use here}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}
