// RUN: pisa-opt %s -pisa-decompose -canonicalize -cse | FileCheck %s

// With a chunk in its config, attention is a loop over chunks of queries that
// share their scratch; two sequences share the chunk's queries too.

// CHECK-LABEL: func.func @attend(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x1000x64xbf16>
// CHECK: %[[PARTIAL:.*]] = tensor.empty() : tensor<2x2x1024x64xbf16>
// CHECK: %[[SUMS:.*]] = tensor.empty() : tensor<2x2x1024xf32>
// CHECK: scf.for %[[BASE:.*]] = %c0 to %c1000 step %c128 iter_args(%[[O:.*]] = %{{.*}})
// CHECK: %[[CHUNK:.*]] = tensor.extract_slice %[[Q]][0, 0, %[[BASE]], 0]
// CHECK: %[[LISTS:.*]] = tensor.extract_slice {{.*}}[0, 0, %[[BASE]], 0]
// CHECK: linalg.fill
// CHECK: %[[COUNTS:.*]] = pisa.count_entries {{.*}}ins(%[[LISTS]] :
// CHECK-SAME: limit = 0 : i64
// CHECK: %[[PLACED:.*]]:3 = pisa.place_entries {{.*}}ins(%[[COUNTS]] :
// CHECK: %[[LISTED:.*]]:2 = pisa.list_entries {{.*}}ins(%[[LISTS]] :
// CHECK: %[[PARTS:.*]]:2 = pisa.attend_entries {{.*}}ins(%[[CHUNK]], %{{.*}}, %{{.*}}, %[[PLACED]]#0, %[[LISTED]]#1, %[[PLACED]]#2 :
// CHECK-SAME: query_offset(%[[BASE]])
// CHECK-SAME: outs(%[[PARTIAL]], %[[SUMS]] :
// CHECK: %[[INTO:.*]] = tensor.extract_slice %[[O]]
// CHECK: %[[MERGED:.*]] = pisa.merge_entries {{.*}}ins(%[[LISTS]], %[[PARTS]]#0, %[[PARTS]]#1 :
// CHECK-SAME: outs(%[[INTO]] :
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[MERGED]] into %[[O]]
// CHECK: scf.yield %[[NEXT]]
func.func @attend(%q: tensor<2x4x1000x64xbf16>, %k: tensor<2x2x1000x64xbf16>,
                  %v: tensor<2x2x1000x64xbf16>, %i: tensor<2x2x1000x4xi32>,
                  %n: tensor<2xi32>, %start: tensor<2xi32>, %scale: f32,
                  %o: tensor<2x4x1000x64xbf16>) -> tensor<2x4x1000x64xbf16> {
  %0 = pisa.attention #pisa.params<topk = 4> ins(%q, %k, %v, %i : tensor<2x4x1000x64xbf16>,
         tensor<2x2x1000x64xbf16>, tensor<2x2x1000x64xbf16>, tensor<2x2x1000x4xi32>)
         k_len(%n : tensor<2xi32>) q_start(%start : tensor<2xi32>) scale(%scale)
         outs(%o : tensor<2x4x1000x64xbf16>)
         {lowering_config = #pisa.lowering_config<query_tile = 32, leaf_tile = 8, row_tile = 2,
            column_tile = 64, gather = 128, chunk = 256, compact = true, operand_type = bf16>}
         -> tensor<2x4x1000x64xbf16>
  return %0 : tensor<2x4x1000x64xbf16>
}
