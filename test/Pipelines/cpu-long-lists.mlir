// RUN: pisa-opt %s -pisa-cpu-pipeline | FileCheck %s

// The longest lists compile, for they are looped over and not unrolled.

// CHECK: llvm.func @route(
// CHECK: llvm.call @pisaParallelFor(
// CHECK: llvm.func @attention(
// CHECK: llvm.call @pisaParallelFor(
func.func @route(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %pyr: tensor<1x2x7x64xf32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %idx: tensor<1x2x200x4096xi32>,
    %cnt: tensor<1x2x200xi32>,
    %sc: tensor<1x2x200x4096xf32>)
    -> (tensor<1x2x200x4096xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4096xf32>) {
  %0:3 = pisa.route #pisa.params<topk = 4096> ins(%q, %k, %pyr :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x7x64xf32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%idx : tensor<1x2x200x4096xi32>)
    count(%cnt : tensor<1x2x200xi32>)
    scores(%sc : tensor<1x2x200x4096xf32>)
    -> tensor<1x2x200x4096xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4096xf32>
  return %0#0, %0#1, %0#2 : tensor<1x2x200x4096xi32>, tensor<1x2x200xi32>, tensor<1x2x200x4096xf32>
}

func.func @attention(
    %q: tensor<1x4x200x64xf32>,
    %k: tensor<1x2x256x64xf32>,
    %v: tensor<1x2x256x32xf32>,
    %idx: tensor<1x2x200x4096xi32>,
    %n: tensor<1xi32>,
    %scale: f32,
    %o: tensor<1x4x200x32xf32>,
    %lse: tensor<1x4x200xf32>)
    -> (tensor<1x4x200x32xf32>, tensor<1x4x200xf32>) {
  %0:2 = pisa.attention #pisa.params<topk = 4096> ins(%q, %k, %v, %idx :
      tensor<1x4x200x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x32xf32>, tensor<1x2x200x4096xi32>)
    k_len(%n : tensor<1xi32>)
    scale(%scale)
    outs(%o : tensor<1x4x200x32xf32>)
    lse(%lse : tensor<1x4x200xf32>)
    -> tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
  return %0#0, %0#1 : tensor<1x4x200x32xf32>, tensor<1x4x200xf32>
}
