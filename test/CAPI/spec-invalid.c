/* Kernels that are refused, with the argument's name, its value, what is allowed.
 *
 * RUN: %cc -std=c11 -Wall -Wextra -Werror %pisa_c_flags %s -o %t
 * RUN: %t | FileCheck %s
 */
#include "pisa-c/Kernel.h"

#include <stdio.h>

#define TRY(change)                                                            \
  do {                                                                         \
    PisaKernelSpec spec;                                                       \
    PisaKernel *kernel = NULL;                                                 \
    pisaKernelSpecInit(&spec);                                                 \
    spec.dtype = PISA_F32;                                                     \
    spec.heads = 4, spec.kv_heads = 2, spec.head_dim = spec.value_dim = 64;    \
    spec.cache_directory = "";                                                 \
    change;                                                                    \
    PisaStatus status = pisaKernelCreate(&spec, &kernel);                      \
    printf("%d %d %s\n", status, kernel != NULL, pisaGetLastError());          \
  } while (0)

int main(void) {
  // CHECK: 1 0 expected 'fanout' to be in [2, 64], but got 1
  TRY(spec.fanout = 1);
  // CHECK: 1 0 expected 'topk' to be at least 3, the number of forced blocks, but got 2
  TRY(spec.topk = 2);
  // CHECK: 1 0 expected 'beam' to be at least 'topk' = 16, but got 8
  TRY(spec.beam = 8);
  // CHECK: 1 0 expected 'rerank' to be 0 or in {{.*}} but got 3
  TRY(spec.rerank = 3);
  // CHECK: 1 0 expected 'leaf_atoms' to divide 'block_size' = 64, but got 5
  TRY((spec.leaf_atoms = 5, spec.rerank = 0));
  // CHECK: 1 0 expected 'local_blocks' to be at least 1 in causal attention, but got 0
  TRY(spec.local_blocks = 0);
  // CHECK: 1 0 expected 'block_size' to be in [1, 4096], but got 5000
  TRY(spec.block_size = 5000);
  // CHECK: 3 0 expected head dimension D to be a multiple of 8 in [8, 256], but got 20
  TRY(spec.head_dim = 20);
  // CHECK: 3 0 expected head dimension Dv to be a multiple of 8 in [8, 256], but got 512
  TRY(spec.value_dim = 512);
  // CHECK: 1 0 expected the number of query heads Hq {{.*}} but got 3 and 2
  TRY(spec.heads = 3);
  // CHECK: 2 0 expected a dtype, but got none
  TRY(spec.dtype = PISA_DTYPE_DEFAULT);
  // CHECK: 2 0 expected summary_dtype to be {{.*}} but got 9
  TRY(spec.summary_dtype = 9);
  // CHECK: 1 0 expected flags below 1024, but got 1024
  TRY(spec.flags = 1024);
  // CHECK: 1 0 expected target to be the CPU (0) or CUDA (1), but got 2
  TRY(spec.target = 2);
  // CHECK: 1 0 expected one function or all three, but got the set 5
  TRY(spec.function = 5);
  // CHECK: 1 0 expected queries without positions only where causal is false
  TRY(spec.flags = PISA_WITHOUT_Q_START);
  // CHECK: 1 0 expected the name of a CPU that LLVM knows, but got 'abacus'
  TRY(spec.cpu = "abacus");
  // CHECK: 1 0 expected struct_size of PisaKernelSpec to be
  TRY(spec.struct_size = 1);
  // CHECK: 1 0 expected lists as wide as topk = 16 {{.*}} but got 8
  TRY(spec.list_width = 8);
  return 0;
}
