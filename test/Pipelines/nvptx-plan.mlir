// The host computes sizes, allocates scratch and launches; kernels multiply 16-bit matrices.

// RUN: pisa-opt %s --pisa-nvptx-pipeline | FileCheck %s
// RUN: pisa-opt %s --pisa-nvptx-pipeline | pisa-translate --emit-ptx --chip=sm_90 \
// RUN:   | FileCheck %s --check-prefix=PTX

// CHECK-LABEL: func.func @attend
// CHECK:         memref.alloc
// CHECK:         gpu.launch_func @kernels::@attend_kernel0
// CHECK:         return
// CHECK:       gpu.module @kernels
// CHECK:         nvvm.mma.sync
// CHECK-NOT:     vector.contract

// PTX:       .target sm_90
// PTX:       .extern .shared
// PTX:       cp.async.cg.shared.global
// PTX:       mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
func.func @attend(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>,
                  %v: tensor<?x2x?x64xbf16>, %i: tensor<?x2x?x4xi32>, %n: tensor<?xi32>,
                  %scale: f32, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %i : tensor<?x4x?x64xbf16>,
         tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x4xi32>)
         k_len(%n : tensor<?xi32>) scale(%scale) outs(%o : tensor<?x4x?x64xbf16>)
         -> tensor<?x4x?x64xbf16>
  return %0 : tensor<?x4x?x64xbf16>
}
