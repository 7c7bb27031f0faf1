// RUN: split-file %s %t
// RUN: pisa-opt %t/problem.mlir -pisa-verify-level=level=problem | FileCheck %s
// RUN: pisa-opt %t/phase.mlir -pisa-verify-level=level=phase | FileCheck %s
// RUN: pisa-opt %t/tile.mlir -pisa-verify-level=level=tile | FileCheck %s
// RUN: pisa-opt %t/kernel.mlir -pisa-verify-level=level=kernel | FileCheck %s
// RUN: pisa-opt %t/llvm.mlir -pisa-verify-level=level=llvm | FileCheck %s

// Each level accepts what belongs to it, and the pass changes nothing.
// 
// CHECK: @f

//--- problem.mlir
func.func @f(
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

//--- phase.mlir
func.func @f(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4xi32>,
    %n: tensor<1xi32>,
    %start: tensor<1xi32>,
    %first: index,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>) {
  %0 = pisa.attend_tiles #pisa.params<topk = 4> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4xi32>)
    k_len(%n : tensor<1xi32>)
    q_start(%start : tensor<1xi32>)
    query_offset(%first)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    -> tensor<1x4x200x32xf32>
  return
}

//--- tile.mlir
func.func @f(%v: tensor<1x1x256x32xf32>, %n: tensor<1xi32>,
             %init: tensor<1x64x32xf32>) -> tensor<1x64x32xf32> {
  %c0 = arith.constant 0 : index
  %0 = scf.forall (%b) in (4) shared_outs(%out = %init) -> (tensor<1x64x32xf32>) {
    %slice = tensor.extract_slice %out[0, 0, 0] [1, 64, 32] [1, 1, 1]
      : tensor<1x64x32xf32> to tensor<64x32xf32>
    %1 = pisa.pack_values ins(%v : tensor<1x1x256x32xf32>)
      k_len(%n : tensor<1xi32>) block(%c0)
      outs(%slice : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %out[0, 0, 0] [1, 64, 32] [1, 1, 1]
        : tensor<64x32xf32> into tensor<1x64x32xf32>
    }
  }
  return %0 : tensor<1x64x32xf32>
}
//--- kernel.mlir
func.func @f(%v: memref<1x1x256x32xf32>, %n: memref<1xi32>, %b: index) {
  %0 = memref.alloc() : memref<64x32xf32>
  pisa.pack_values ins(%v : memref<1x1x256x32xf32>) k_len(%n : memref<1xi32>)
    block(%b) outs(%0 : memref<64x32xf32>)
  memref.dealloc %0 : memref<64x32xf32>
  return
}
//--- llvm.mlir
llvm.func @f() {
  llvm.return
}
