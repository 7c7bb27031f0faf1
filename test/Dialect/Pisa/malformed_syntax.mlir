// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Missing, repeated and unknown pieces of an op.

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // no params
  // expected-error @below {{expected '<'}}
  %0 = pisa.attention
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // another attribute in place of the params
  // expected-error @below {{expected '<'}}
  %0 = pisa.attention 4 : i64
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // no inputs
  // expected-error @+2 {{custom op 'pisa.attention' expected 'ins'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // no k_len
  // expected-error @+4 {{custom op 'pisa.attention' expected 'k_len'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // no scale
  // expected-error @+5 {{custom op 'pisa.attention' expected 'scale'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // no inits
  // expected-error @+6 {{custom op 'pisa.attention' expected 'outs'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // optional operands in another order
  // expected-error @+6 {{custom op 'pisa.attention' expected 'scale'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    cu_seqlens_k(%n : tensor<1xi32>)
    q_start(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // k_len twice
  // expected-error @+5 {{custom op 'pisa.attention' expected 'scale'}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // an operand that does not exist
  // expected-error @+4 {{use of undeclared SSA value name}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%m : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // a type that is not that of the operand
  // expected-error @+5 {{use of value '%n' expects different type than prior uses: 'tensor<2xi32>' vs 'tensor<1xi32>'}}
  // expected-note @-3 {{prior use here}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<2xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // too few types
  // expected-error @+2 {{expected ','}}
  %0 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // fewer results than values
  // expected-error @below {{operation defines 1 results but was provided 2 to bind}}
  %0:2 = pisa.attention #pisa.params<topk = 4>
    ins(%q, %k, %k, %idx : tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x64xf32>)
    -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // an unknown op
  // expected-error @below {{custom op 'pisa.attend' is unknown}}
  pisa.attend %q
  return
}

// -----

// an unknown attribute
// expected-error @below {{unknown attribute `parameters` in dialect `pisa`}}
#a = #pisa.parameters<topk = 4>

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // generic form without segment sizes
  // expected-error @below {{'pisa.attention' op operand count (7) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %0 = "pisa.attention"(%q, %k, %k, %idx, %n, %scale, %o) <{params = #pisa.params<topk = 4>}>
    : (tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>, tensor<1xi32>, f32, tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // generic form with wrong segment sizes
  // expected-error @below {{'pisa.attention' op operand count (7) does not match with the total size (8) specified in attribute 'operandSegmentSizes'}}
  %0 = "pisa.attention"(%q, %k, %k, %idx, %n, %scale, %o) <{params = #pisa.params<topk = 4>,
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0>}>
    : (tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>, tensor<1xi32>, f32, tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // generic form with negative segment sizes
  // expected-error @below {{'pisa.attention' op 'operandSegmentSizes' attribute cannot have negative elements}}
  %0 = "pisa.attention"(%q, %k, %k, %idx, %n, %scale, %o) <{params = #pisa.params<topk = 4>,
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, -1, 1, 0, 0, 1, 1, 0>}>
    : (tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>, tensor<1xi32>, f32, tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // generic form without params
  // expected-error @below {{'pisa.attention' op requires attribute 'params'}}
  %0 = "pisa.attention"(%q, %k, %k, %idx, %n, %scale, %o) <{
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0>}>
    : (tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x200x4xi32>, tensor<1xi32>, f32, tensor<1x4x200x64xf32>) -> tensor<1x4x200x64xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x200x64xf32>, %k: tensor<1x2x256x64xf32>, %idx: tensor<1x2x200x4xi32>, %n: tensor<1xi32>, %scale: f32, %o: tensor<1x4x200x64xf32>) {
  // generic form without operands
  // expected-error @below {{'pisa.next_block' op requires one result}}
  "pisa.next_block"() {divisor = 1 : i64} : () -> ()
  return
}
