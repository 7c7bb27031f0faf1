// A function of a file on a device. What is only passed through comes back as it
// went; what an op writes begins as NaN and is still that, as the kernels of this
// driver do nothing.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner %s --entry=pass --seed=1 --output-dir=%t/cpu
// RUN: %fake_cuda pisa-runner %s --target=cuda --entry=pass --seed=1 \
// RUN:   --output-dir=%t/cuda
// RUN: cmp %t/cpu/result0.npy %t/cuda/result0.npy

// RUN: %fake_cuda pisa-runner %s --target=cuda --entry=build --inputs=arg1=100 \
// RUN:   --time=2 --json=%t/report.json --output-dir=%t/build > %t/log 2>&1
// RUN: FileCheck %s --input-file=%t/log --match-full-lines
// RUN: %python -c "print(set(open('%t/build/result0.npy', 'rb').read()[-2*14*16*2:]))" \
// RUN:   | FileCheck %s --check-prefix=NAN
// RUN: FileCheck %s --input-file=%t/report.json --check-prefix=JSON

//      CHECK:build: 1.250 ms (median of 2, by CUDA events, device 0 (Fake GPU, sm_90))
// CHECK-NEXT:fake driver: {{[1-9][0-9]*}} launches; left: 0 allocations, 0 events, 0 modules, 0 pools, 0 contexts
//  CHECK-NOT:{{.}}
// NAN: {{^}}{255}
// JSON: "device": "device 0 (Fake GPU, sm_90)"
// JSON: "op": "build"
// JSON: "target": "cuda"

// RUN: %no_cuda pisa-runner %s --target=auto --entry=pass 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AUTO
// AUTO: [pisa-runner] --target=auto: cpu (no CUDA driver: {{.*}}

// RUN: not %fake_cuda pisa-runner %s --target=reference --entry=pass 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFERENCE
// REFERENCE: expected --target to be cpu, cuda or auto for a .mlir file, but got 'reference'

// RUN: not %fake_cuda pisa-runner %s --target=cuda --entry=hidden 2>&1 \
// RUN:   | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: pisa-runner: error: expected @hidden to be a public function

func.func @pass(%0: tensor<1x1x1x8xf16>) -> tensor<1x1x1x8xf16> {
  return %0 : tensor<1x1x1x8xf16>
}

func.func private @hidden(%0: tensor<1x1x1x8xf16>) -> tensor<1x1x1x8xf16> {
  return %0 : tensor<1x1x1x8xf16>
}

func.func @build(%k: tensor<2x1x100x16xf16>, %k_len: tensor<2xi32>,
    %pyramid: tensor<2x1x14x16xf16>) -> tensor<2x1x14x16xf16> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<2x1x100x16xf16>) k_len(%k_len : tensor<2xi32>)
      outs(%pyramid : tensor<2x1x14x16xf16>) -> tensor<2x1x14x16xf16>
  return %0 : tensor<2x1x14x16xf16>
}
