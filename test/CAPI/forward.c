/* The whole forward pass and its parts from C: the parts give the very bits of
 * the whole, in both layouts, and bad calls are errors.
 *
 * RUN: %cc -std=c11 -Wall -Wextra -Werror %pisa_c_flags %s -o %t -lm
 * RUN: %t | FileCheck %s
 */
#include "pisa-c/Kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, HQ = 4, HKV = 2, T = 300, D = 16, DV = 24, K = 3, C = 32, G = 2 };

static DLTensor view(void *data, DLDataTypeCode code, int ndim, int64_t *shape) {
  DLTensor t;
  memset(&t, 0, sizeof(t));
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = ndim;
  t.dtype.code = (uint8_t)code;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static float *numbers(size_t count, unsigned seed) {
  float *data = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
  return data;
}

static void *poison(size_t bytes) { return memset(malloc(bytes), 0xff, bytes); }

static PisaKernel *create(PisaFunction function, uint32_t flags) {
  PisaKernelSpec spec;
  pisaKernelSpecInit(&spec);
  spec.function = function;
  spec.flags = flags;
  spec.dtype = PISA_F32;
  spec.heads = HQ;
  spec.kv_heads = HKV;
  spec.head_dim = D;
  spec.value_dim = DV;
  spec.block_size = C;
  spec.topk = K;
  spec.cache_directory = "";
  PisaKernel *kernel;
  if (pisaKernelCreate(&spec, &kernel) != PISA_SUCCESS) {
    printf("create: %s\n", pisaGetLastError());
    exit(1);
  }
  return kernel;
}

static void run(const char *name, PisaKernel *kernel, const PisaTensors *t) {
  PisaRunInfo info = {sizeof(info), 0};
  PisaStatus status = pisaKernelRun(kernel, t, NULL, &info);
  printf("%s: status %d, scratch %s%s\n", name, status,
         info.scratch_bytes ? "used" : "none",
         status ? pisaGetLastError() : "");
}

int main(void) {
  float *q = numbers(B * HQ * T * D, 1), *k = numbers(B * HKV * T * D, 2);
  float *v = numbers(B * HKV * T * DV, 3);
  float *out = poison(B * HQ * T * DV * 4), *lse = poison(B * HQ * T * 4);
  float *out2 = poison(B * HQ * T * DV * 4), *lse2 = poison(B * HQ * T * 4);
  int32_t *idx = poison(B * HKV * T * K * 4), *idx2 = poison(B * HKV * T * K * 4);
  int64_t rows = pisaGetPyramidRows(T, C, G);
  float *pyr = poison((size_t)(B * HKV * rows * D * 4));
  printf("rows %d, levels %d, %d\n", (int)rows,
         (int)pisaGetPyramidLevels(T, C, G), (int)pisaGetPyramidRows(-1, C, G));
  // CHECK: rows 21, levels 5, -1

  int64_t qShape[] = {B, HQ, T, D}, kShape[] = {B, HKV, T, D};
  int64_t vShape[] = {B, HKV, T, DV}, oShape[] = {B, HQ, T, DV};
  int64_t lShape[] = {B, HQ, T}, iShape[] = {B, HKV, T, K};
  int64_t pShape[] = {B, HKV, rows, D};
  DLTensor qt = view(q, kDLFloat, 4, qShape), kt = view(k, kDLFloat, 4, kShape);
  DLTensor vt = view(v, kDLFloat, 4, vShape), ot = view(out, kDLFloat, 4, oShape);
  DLTensor lt = view(lse, kDLFloat, 3, lShape), it = view(idx, kDLInt, 4, iShape);
  DLTensor pt = view(pyr, kDLFloat, 4, pShape);

  PisaTensors t = {.struct_size = sizeof(t)};
  t.softmax_scale = 0.25f;
  t.q = &qt, t.k = &kt, t.v = &vt, t.out = &ot, t.lse = &lt, t.indices = &it;
  PisaKernel *forward = create(PISA_FORWARD, PISA_WANT_LSE);
  run("forward", forward, &t);
  // CHECK: forward: status 0, scratch used
  int bad = 0;
  for (int i = 0; i < B * HQ * T * DV; ++i)
    bad += !isfinite(out[i]);
  printf("not finite: %d\n", bad);
  // CHECK: not finite: 0

  PisaTensors p = {.struct_size = sizeof(p)};
  p.softmax_scale = 0.25f;
  p.k = &kt, p.pyramid = &pt;
  PisaKernel *build = create(PISA_BUILD_PYRAMID, 0);
  run("build_pyramid", build, &p);
  // CHECK: build_pyramid: status 0
  DLTensor it2 = view(idx2, kDLInt, 4, iShape);
  p.q = &qt, p.indices = &it2;
  PisaKernel *route = create(PISA_ROUTE, 0);
  run("route", route, &p);
  // CHECK: route: status 0
  PisaTensors a = t;
  DLTensor ot2 = view(out2, kDLFloat, 4, oShape);
  DLTensor lt2 = view(lse2, kDLFloat, 3, lShape);
  a.indices = &it2, a.out = &ot2, a.lse = &lt2;
  PisaKernel *attention = create(PISA_ATTENTION, PISA_WANT_LSE);
  run("attention", attention, &a);
  // CHECK: attention: status 0
  printf("same: %d %d %d\n", !memcmp(idx, idx2, B * HKV * T * K * 4),
         !memcmp(out, out2, B * HQ * T * DV * 4), !memcmp(lse, lse2, B * HQ * T * 4));
  // CHECK: same: 1 1 1

  // [B, T, H, D]: sizes and strides are those of the swapped tensors.
  int64_t qHeads[] = {B, T, HQ, D}, kHeads[] = {B, T, HKV, D};
  int64_t vHeads[] = {B, T, HKV, DV}, oHeads[] = {B, T, HQ, DV};
  int64_t qStrides[] = {HQ * T * D, D, T * D, 1};
  int64_t kStrides[] = {HKV * T * D, D, T * D, 1};
  int64_t vStrides[] = {HKV * T * DV, DV, T * DV, 1};
  int64_t oStrides[] = {HQ * T * DV, DV, T * DV, 1};
  memset(out2, 0xff, B * HQ * T * DV * 4);
  qt.shape = qHeads, qt.strides = qStrides, kt.shape = kHeads, kt.strides = kStrides;
  vt.shape = vHeads, vt.strides = vStrides, ot2.shape = oHeads, ot2.strides = oStrides;
  a = t;
  a.heads_inside = 1, a.out = &ot2, a.lse = &lt2, a.indices = NULL;
  run("heads inside", forward, &a);
  printf("same: %d\n", !memcmp(out, out2, B * HQ * T * DV * 4));
  // CHECK: heads inside: status 0
  // CHECK: same: 1

  // Errors name the tensor, the axis, and both sizes.
  vHeads[1] = T - 1;
  run("keys", forward, &a);
  // CHECK: keys: status 1{{.*}}expected Tk of 'v' [B, Tk, Hkv, Dv] to be 300, as in 'k', but got 299
  vHeads[1] = T;
  kStrides[3] = 2;
  run("stride", forward, &a);
  // CHECK: stride: status 1{{.*}}'k' [B, Tk, Hkv, D] to have stride 1 in its last dimension, but got 2
  kStrides[3] = 1;
  vt.dtype.bits = 64;
  run("dtype", forward, &a);
  // CHECK: dtype: status 2{{.*}}expected 'v' to be float32, but got float64
  vt.dtype.bits = 32;
  vt.device.device_type = kDLCUDA;
  run("device", forward, &a);
  // CHECK: device: status 3{{.*}}'v' to be in the CPU's memory
  vt.device.device_type = kDLCPU;
  oStrides[1] = 0;
  run("output", forward, &a);
  // CHECK: output: status 1{{.*}}'out' [B, Tq, Hq, Dv] to have an own place for each element
  oStrides[1] = DV;
  a.q = NULL;
  run("absent", forward, &a);
  // CHECK: absent: status 2{{.*}}expected a tensor 'q', but got none
  a.q = &qt;
  a.pyramid = &pt;
  run("extra", forward, &a);
  // CHECK: extra: status 1{{.*}}expected no 'pyramid'
  a.pyramid = NULL;
  a.struct_size = 8;
  run("struct", forward, &a);
  // CHECK: struct: status 1{{.*}}expected struct_size of PisaTensors to be
  a.struct_size = sizeof(a);
  a.softmax_scale = NAN;
  run("scale", forward, &a);
  // CHECK: scale: status 1{{.*}}softmax_scale
  a.softmax_scale = 0.25f;
  int32_t lengths[] = {T, T + 1};
  int64_t two[] = {B};
  DLTensor lengthsView = view(lengths, kDLInt, 1, two);
  a.k_len = &lengthsView;
  run("k_len", forward, &a);
  // CHECK: k_len: status 1{{.*}}expected k_len[1] to be in [0, 300], but got 301
  a.k_len = NULL;
  int stream;
  printf("stream: %d\n", pisaKernelRun(forward, &a, &stream, NULL));
  // CHECK: stream: 1

  // And it still works, on as many threads as one likes.
  printf("threads: %d %d\n", pisaSetNumThreads(3), (int)pisaGetNumThreads());
  // CHECK: threads: 0 3
  memset(out2, 0xff, B * HQ * T * DV * 4);
  run("again", forward, &a);
  printf("same: %d\n", !memcmp(out, out2, B * HQ * T * DV * 4));
  // CHECK: again: status 0
  // CHECK: same: 1
  printf("threads: %d\n", pisaSetNumThreads(5000));
  // CHECK: threads: 1

  pisaKernelDestroy(forward), pisaKernelDestroy(build);
  pisaKernelDestroy(route), pisaKernelDestroy(attention);
  pisaKernelDestroy(NULL);
  free(q), free(k), free(v), free(out), free(lse), free(out2), free(lse2);
  free(idx), free(idx2), free(pyr);
  return 0;
}
