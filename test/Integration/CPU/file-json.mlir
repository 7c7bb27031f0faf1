// --json of a file: the function's name, and its time where --time asks for it.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner %s --inputs=arg1=100 --threads=2 --json=%t/plain.json
// RUN: FileCheck %s --match-full-lines --input-file=%t/plain.json
// RUN: pisa-runner %s --inputs=arg1=100 --threads=1 --time=3 \
// RUN:   --json=%t/timed.json
// RUN: FileCheck %s --match-full-lines --input-file=%t/timed.json \
// RUN:   --check-prefix=TIMED
// RUN: %python -m json.tool %t/timed.json

//      CHECK:{
// CHECK-NEXT:  "op": "build",
// CHECK-NEXT:  "peak_rss_bytes": {{[1-9][0-9]+}},
// CHECK-NEXT:  "phases": [],
// CHECK-NEXT:  "scratch_bytes": {{[0-9]+}},
// CHECK-NEXT:  "target": "cpu",
// CHECK-NEXT:  "threads": 2
// CHECK-NEXT:}
//  CHECK-NOT:{{.}}

//      TIMED:  "op": "build",
//      TIMED:  "phases": [
// TIMED-NEXT:    {
// TIMED-NEXT:      "ms": {{[0-9.e-]+}},
// TIMED-NEXT:      "name": "build"
// TIMED-NEXT:    }
// TIMED-NEXT:  ],
//      TIMED:  "threads": 1

func.func @build(%k: tensor<1x1x100x16xf32>, %k_len: tensor<1xi32>,
    %pyramid: tensor<1x1x14x16xf32>) -> tensor<1x1x14x16xf32> {
  %0 = pisa.build_pyramid #pisa.params<block_size = 16, topk = 4>
      ins(%k : tensor<1x1x100x16xf32>) k_len(%k_len : tensor<1xi32>)
      outs(%pyramid : tensor<1x1x14x16xf32>) -> tensor<1x1x14x16xf32>
  return %0 : tensor<1x1x14x16xf32>
}
