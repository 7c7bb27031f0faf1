/*===- Kernel.h - Pyramid Top-K Sparse Attention from C ----------*- C -*-===*\
|*                                                                            *|
|* Part of the PISA project, under the Apache License v2.0 with LLVM          *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef PISA_C_KERNEL_H
#define PISA_C_KERNEL_H

#include "pisa-c/Status.h"

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

/* B batch; Tq, Tk lengths; Hq, Hkv heads, query head h reads kv head
 * h / (Hq / Hkv); D of q and k, Dv of v; C block_size, g fanout, K topk,
 * Q query_block, NQ = ceil(Tq / Q). docs/Spec.md has the semantics. */

typedef enum PisaDType {
  PISA_DTYPE_DEFAULT = 0,
  PISA_F32 = 1,
  PISA_F16 = 2,
  PISA_BF16 = 3
} PisaDType;

typedef enum PisaFunction {
  PISA_BUILD_PYRAMID = 1, /* k -> pyramid, open_sums, atoms, outlier */
  PISA_ROUTE = 2,         /* q, k, pyramid, atoms, outlier -> indices, count,
                             scores */
  PISA_ATTENTION = 4,     /* q, k, v, indices -> out, lse */
  PISA_FORWARD = 7        /* q, k, v -> out, lse, indices */
} PisaFunction;

enum {
  PISA_WITHOUT_Q_START = 1, /* non-causal only: no query has a position */
  PISA_WANT_OPEN_SUMS = 2,
  PISA_WANT_COUNT = 4,
  PISA_WANT_SCORES = 8,
  PISA_WANT_LSE = 16,
  PISA_CHECK_INPUTS = 32, /* report lists with an entry twice */
  /* GPUs: calls will give these. Code is compiled for what is given: without
     the hint, the first call that gives them compiles. */
  PISA_EXPECT_K_LEN = 64,
  PISA_EXPECT_Q_START = 128,
  PISA_EXPECT_INDICES = 256,  /* of PISA_FORWARD */
  PISA_EXPECT_MANY_KEYS = 512 /* PISA_MANY_KEYS or more of them */
};

/* From so many keys on GPUs may attend block by block of keys, with scratch
   that does not grow with the number of queries, instead of by tiles of
   queries. */
#define PISA_MANY_KEYS 16384

typedef enum PisaTarget { PISA_TARGET_CPU = 0, PISA_TARGET_CUDA = 1 } PisaTarget;

/* What code is compiled for; it serves any B, Tq and Tk. The parameters are
 * those of #pisa.params. pisaKernelSpecInit sets the defaults. */
typedef struct PisaKernelSpec {
  size_t struct_size;
  int32_t function;        /* PisaFunction */
  uint32_t flags;
  int32_t dtype;           /* PisaDType of q, k, v and out; no default */
  int32_t summary_dtype;   /* PisaDType; default: dtype */
  int64_t heads;           /* Hq; no default */
  int64_t kv_heads;        /* Hkv; no default */
  int64_t head_dim;        /* D; no default */
  int64_t value_dim;       /* Dv; no default */
  int64_t list_width;      /* of PISA_ATTENTION: entries of a list; -1: topk */
  int64_t block_size;      /* 64 */
  int64_t fanout;          /* 2 */
  int64_t topk;            /* 16 */
  int64_t beam;            /* -1: topk */
  int64_t rerank;          /* -1: absent */
  int64_t leaf_atoms;      /* 4 */
  int64_t query_block;     /* 1 */
  int64_t sink_blocks;     /* 1 */
  int64_t local_blocks;    /* 2 */
  int32_t causal;          /* 1 */
  /* LLVM's name of the CPU to compile for; NULL: this one. */
  const char *cpu;
  /* Folder of compiled kernels; NULL: the default one; "": none. */
  const char *cache_directory;
  /* A caller of version 0.1.0 ends here. */
  int32_t target; /* PisaTarget */
  int32_t device; /* of CUDA: its number, whose chip is compiled for */
  /* LLVM's name of the GPU to compile for, without asking the driver: "sm_90";
   * NULL: that of `device`. */
  const char *chip;
} PisaKernelSpec;

/* Null pointers are absent. Any strides, but 1 in the last dimension; a null
 * strides field means contiguous. Tensors must be in the CPU's memory, for CUDA
 * kernels on one device, and are only borrowed. Outputs must not overlap
 * anything else. */
typedef struct PisaTensors {
  size_t struct_size;
  const DLTensor *q;         /* [B, Hq, Tq, D] */
  const DLTensor *k;         /* [B, Hkv, Tk, D] */
  const DLTensor *v;         /* [B, Hkv, Tk, Dv] */
  const DLTensor *k_len;     /* [B] int32; absent: Tk */
  const DLTensor *q_start;   /* [B] int32; absent: k_len - Tq */
  const DLTensor *pyramid;   /* [B, Hkv, rows, D] */
  const DLTensor *open_sums; /* [B, Hkv, levels, D] float32 */
  const DLTensor *atoms;     /* [B, Hkv, leaves, A, D] */
  const DLTensor *outlier;   /* [B, Hkv, leaves] int32 */
  const DLTensor *indices;   /* [B, Hkv, NQ, K] int32 */
  const DLTensor *count;     /* [B, Hkv, NQ] int32 */
  const DLTensor *scores;    /* [B, Hkv, NQ, K] float32 */
  const DLTensor *out;       /* [B, Hq, Tq, Dv] */
  const DLTensor *lse;       /* [B, Hq, Tq] float32, natural logarithm */
  /* q, k, v and out are [B, T, H, D] instead. */
  int32_t heads_inside;
  float softmax_scale; /* multiplies q . k */
} PisaTensors;

typedef struct PisaKernel PisaKernel;

PISA_C_API void pisaKernelSpecInit(PisaKernelSpec *spec);

/* Compiles, or takes from the cache. */
PISA_C_API PisaStatus pisaKernelCreate(const PisaKernelSpec *spec,
                                       PisaKernel **kernel);
PISA_C_API void pisaKernelDestroy(PisaKernel *kernel);

/* Checks every tensor, then runs. A CPU call is done when it returns, and
 * `stream` must be null. A CUDA call puts its work on `stream`, a CUstream of
 * the tensors' device (null: the default stream), and does not wait; it may be
 * captured into a graph. What tensors hold there is not read: lengths that are
 * wrong are not reported. With PISA_CHECK_INPUTS it waits for the check, and
 * cannot be captured. `info` may be null. */
PISA_C_API PisaStatus pisaKernelRun(PisaKernel *kernel,
                                    const PisaTensors *tensors, void *stream,
                                    PisaRunInfo *info);

/* What went wrong with the cache; "" if nothing. Lives as long as the kernel. */
PISA_C_API const char *pisaKernelGetWarning(const PisaKernel *kernel);
PISA_C_API int32_t pisaKernelIsFromCache(const PisaKernel *kernel);

/* The choices that would be made for a spec, as JSON. The text is valid until
 * the next such call on this thread. */
PISA_C_API PisaStatus pisaExplain(const PisaKernelSpec *spec,
                                  const char **json);

/* Rows of a pyramid over `keys` keys, all levels together, and levels, leaves
 * included: shapes of the tensors above. -1 for arguments out of range. */
PISA_C_API int64_t pisaGetPyramidRows(int64_t keys, int64_t block_size,
                                      int64_t fanout);
PISA_C_API int64_t pisaGetPyramidLevels(int64_t keys, int64_t block_size,
                                        int64_t fanout);

#ifdef __cplusplus
}
#endif

#endif /* PISA_C_KERNEL_H */
