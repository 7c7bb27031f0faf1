// With scratch for partial outputs the host runs a loop over chunks of queries:
// lists are inverted, each block attended to, and the outputs merged.

// RUN: pisa-opt %s --pisa-nvptx-pipeline=partial-bytes=1000000 | FileCheck %s
// RUN: pisa-opt %s --pisa-nvptx-pipeline=partial-bytes=1000000 \
// RUN:   | pisa-translate --emit-bundle | FileCheck %s --check-prefix=BUNDLE
// RUN: pisa-opt %s --pisa-nvptx-pipeline | FileCheck %s --check-prefix=TILES

// CHECK-LABEL: func.func @attend
// CHECK:         memref.alloc{{.*}}x64xbf16>
// CHECK:         scf.for
// CHECK-NOT:     memref.alloc
// CHECK:           memref.subview %{{.*}} : memref<?x4x?x64xbf16
// CHECK:           gpu.launch_func
// CHECK:           gpu.launch_func
// CHECK:           gpu.launch_func
// CHECK:           gpu.launch_func
// CHECK:           gpu.launch_func
// CHECK:           gpu.launch_func
// CHECK-NEXT:    }
// CHECK-NEXT:    return
// CHECK-NEXT:  }

// BUNDLE: "end": [[END:[0-9]+]]
// BUNDLE-NEXT: "op": "for"
// BUNDLE: "op": "end"

// TILES-NOT: scf.for {{.*}}step
// TILES: gpu.module
func.func @attend(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>,
                  %v: tensor<?x2x?x64xbf16>, %i: tensor<?x2x?x4xi32>, %n: tensor<?xi32>,
                  %scale: f32, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %i : tensor<?x4x?x64xbf16>,
         tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x4xi32>)
         k_len(%n : tensor<?xi32>) scale(%scale) outs(%o : tensor<?x4x?x64xbf16>)
         -> tensor<?x4x?x64xbf16>
  return %0 : tensor<?x4x?x64xbf16>
}
