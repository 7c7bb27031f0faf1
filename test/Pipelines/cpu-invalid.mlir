// RUN: pisa-opt %s -pisa-cpu-pipeline -verify-diagnostics -split-input-file

// What the pipeline refuses, and where.

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<2xi32>,
    %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32> {
  // packed sequences
  // expected-error @below {{'pisa.attention' op expected the dense layout, but got 'cu_seqlens': packed sequences are not supported by this lowering}}
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<2xi32>)
    cu_seqlens_q(%cu_q : tensor<3xi32>)
    cu_seqlens_k(%cu_k : tensor<3xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return %0 : tensor<1x4x200x32xf32>
}

// -----

func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %pages: tensor<1x4xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32> {
  // paged keys
  // expected-error @below {{'pisa.route' op expected contiguous keys, but got 'page_table': paged keys are not supported by this lowering}}
  %0 = pisa.route #pisa.params<topk = 4> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    page_table(%pages : tensor<1x4xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4xi32>)
    -> tensor<1x2x200x4xi32>
  return %0 : tensor<1x2x200x4xi32>
}

// -----

func.func @f(
    %q: memref<1x4x200x64xf32>,
    %k: memref<1x2x256x64xf32>,
    %v: memref<1x2x256x32xf32>,
    %idx: memref<1x2x200x4xi32>,
    %n: memref<1xi32>,
    %scale: f32,
    %o: memref<1x4x200x32xf32>) {
  // a problem on memrefs
  // expected-error @below {{'pisa.attention' op expected tensors to decompose, but got memrefs}}
  pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      memref<1x4x200x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x32xf32>, memref<1x2x200x4xi32>)
    k_len(%n : memref<1xi32>)
    scale(%scale)
    outs(%o : memref<1x4x200x32xf32>)
  return
}

// -----

func.func @f(%x: memref<?xf32>) -> memref<?xf32> {
  // an op that is none of ours
  // expected-error @below {{'bufferization.clone' op does not belong to level 'problem'}}
  %0 = bufferization.clone %x : memref<?xf32> to memref<?xf32>
  return %0 : memref<?xf32>
}

// -----

// an unranked argument
// expected-error @below {{'func.func' op expected ranked tensor arguments, but got 'tensor<*xf32>'}}
func.func private @f(%t: tensor<*xf32>)
