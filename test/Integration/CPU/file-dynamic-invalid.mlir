// Dynamic sizes that disagree are refused before anything runs, with the words of the
// op's verifier.

// RUN: rm -rf %t && mkdir -p %t && cd %t
// RUN: %python %S/Inputs/npy.py q.npy "<f4" 2x2x10x16 1
// RUN: %python %S/Inputs/npy.py k.npy "<f4" 2x1x70x16 1
// RUN: %python %S/Inputs/npy.py k1.npy "<f4" 1x1x70x16 1
// RUN: %python %S/Inputs/npy.py v.npy "<f4" 2x1x70x8 1
// RUN: %python %S/Inputs/npy.py v69.npy "<f4" 2x1x69x8 1
// RUN: %python %S/Inputs/npy.py list.npy "<i4" 2x1x10x4 0 -1 -1 -1
// RUN: %python %S/Inputs/npy.py list9.npy "<i4" 2x1x9x4 0 -1 -1 -1
// RUN: %python %S/Inputs/npy.py length.npy "<i4" 2 70
// RUN: %python %S/Inputs/npy.py length1.npy "<i4" 1 70
// RUN: %python %S/Inputs/npy.py o.npy "<f4" 2x2x10x8 0
// RUN: %python %S/Inputs/npy.py o9.npy "<f4" 2x2x9x8 0
// RUN: %python %S/Inputs/npy.py lse.npy "<f4" 2x2x10 0
// RUN: %python %S/Inputs/npy.py lse1.npy "<f4" 1x2x10 0
// RUN: %python %S/Inputs/npy.py nodes10.npy "<f4" 2x1x10x16 0
// RUN: sh -c "for inputs in \
// RUN:   arg0=q.npy,arg1=k1.npy,arg2=v.npy,arg3=list.npy,arg4=length.npy,arg6=o.npy,arg7=lse.npy \
// RUN:   arg0=q.npy,arg1=k.npy,arg2=v69.npy,arg3=list.npy,arg4=length.npy,arg6=o.npy,arg7=lse.npy \
// RUN:   arg0=q.npy,arg1=k.npy,arg2=v.npy,arg3=list9.npy,arg4=length.npy,arg6=o.npy,arg7=lse.npy \
// RUN:   arg0=q.npy,arg1=k.npy,arg2=v.npy,arg3=list.npy,arg4=length1.npy,arg6=o.npy,arg7=lse.npy \
// RUN:   arg0=q.npy,arg1=k.npy,arg2=v.npy,arg3=list.npy,arg4=length.npy,arg6=o9.npy,arg7=lse.npy \
// RUN:   arg0=q.npy,arg1=k.npy,arg2=v.npy,arg3=list.npy,arg4=length.npy,arg6=o.npy,arg7=lse1.npy; \
// RUN:   do pisa-runner %s --entry=attention --inputs=$inputs,arg5=0.25 \
// RUN:     --output-dir=out; echo exit code $?; done; \
// RUN:   pisa-runner %s --entry=build --output-dir=out \
// RUN:     --inputs=arg0=k.npy,arg1=length.npy,arg2=nodes10.npy; \
// RUN:   echo exit code $?" > log 2>&1
// RUN: FileCheck %s --match-full-lines --input-file=log
// RUN: not ls out

//      CHECK:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 0 of 'k' [B, Hkv, Tk, D] to be 2, but got 1
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 2 of 'v' [B, Hkv, Tk, Dv] to be 70, but got 69
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 2 of 'indices' [B, Hkv, NQ, K] to be 10, but got 9
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 0 of 'k_len' [B] to be 2, but got 1
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 2 of 'o' [B, Hq, Tq, Dv] to be 10, but got 9
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.attention' op expected dimension 0 of 'lse' [B, Hq, Tq] to be 2, but got 1
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
// CHECK-NEXT:loc("{{.*}}.mlir":{{[0-9:]+}}): error: 'pisa.build_pyramid' op expected dimension 2 of 'pyramid' [B, Hkv, nodes, D] to be 11, but got 10
// CHECK-NEXT:pisa-runner: error: the shapes of the inputs do not fit together
// CHECK-NEXT:exit code 1
//  CHECK-NOT:{{.}}

func.func @build(%k: tensor<?x1x?x16xf32>, %k_len: tensor<?xi32>,
    %pyramid: tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<?x1x?x16xf32>) k_len(%k_len : tensor<?xi32>)
      outs(%pyramid : tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  return %0 : tensor<?x1x?x16xf32>
}

func.func @attention(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>,
    %v: tensor<?x1x?x8xf32>, %indices: tensor<?x1x?x4xi32>,
    %k_len: tensor<?xi32>, %scale: f32, %o: tensor<?x2x?x8xf32>,
    %lse: tensor<?x2x?xf32>)
    -> (tensor<?x2x?x8xf32>, tensor<?x2x?xf32>) {
  %0:2 = pisa.attention #pisa.params<block_size = 16, topk = 4>
      ins(%q, %k, %v, %indices : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>,
          tensor<?x1x?x8xf32>, tensor<?x1x?x4xi32>)
      k_len(%k_len : tensor<?xi32>) scale(%scale)
      outs(%o : tensor<?x2x?x8xf32>) lse(%lse : tensor<?x2x?xf32>)
      -> tensor<?x2x?x8xf32>, tensor<?x2x?xf32>
  return %0#0, %0#1 : tensor<?x2x?x8xf32>, tensor<?x2x?xf32>
}
