/* A module for GPUs: PTX, levels, and a call on a device, here one that only
 * pretends to be one.
 *
 * RUN: %cc -std=c11 -Wall -Wextra -Werror %pisa_c_flags %s -o %t -ldl
 * RUN: %fake_cuda %t 2> %t.err | FileCheck %s
 * RUN: FileCheck %s --check-prefix=LEFT < %t.err
 */
#include "pisa-c/Module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text =
    "func.func @copy(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) ->\n"
    "    tensor<?x2xf32> {\n"
    "  %0 = linalg.copy ins(%x : tensor<?x2xf32>) outs(%y : tensor<?x2xf32>)\n"
    "      -> tensor<?x2xf32>\n"
    "  return %0 : tensor<?x2xf32>\n"
    "}\n";

static void say(const char *what, PisaStatus status) {
  printf("%s: %d %s\n", what, status, status ? pisaGetLastError() : "");
}

/* A function of the driver. */
static void *find(const char *name) {
  void *driver = dlopen(getenv("PISA_CUDA_DRIVER"), RTLD_NOW);
  int (*get)(const char *, void **, int, uint64_t, int *) = NULL;
  *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
  void *function = NULL;
  get(name, &function, 12000, 0, NULL);
  return function;
}

static void *allocate(size_t bytes) {
  int (*alloc)(unsigned long long *, size_t) = NULL;
  *(void **)&alloc = find("cuMemAlloc");
  unsigned long long address = 0;
  alloc(&address, bytes);
  return (void *)(uintptr_t)address;
}

static void release(void *data) {
  int (*release)(unsigned long long) = NULL;
  *(void **)&release = find("cuMemFree");
  release((uintptr_t)data);
}

int main(void) {
  PisaModule *module;
  say("old",
      pisaModuleCreateForCuda(text, strlen(text), NULL, "sm_70", &module));
  // CHECK: old: 1 expected a chip of NVIDIA from sm_80 on that LLVM knows, but
  // got 'sm_70'
  say("create",
      pisaModuleCreateForCuda(text, strlen(text), NULL, NULL, &module));
  // CHECK: create: 0
  puts(pisaModuleGetChip(module));
  // CHECK: {{^}}sm_90{{$}}
  const char *ptx, *ir;
  size_t length;
  say("ptx", pisaModuleGetPtx(module, &ptx, &length));
  printf("%d %d\n", strstr(ptx, ".target sm_90") != NULL,
         strlen(ptx) == length);
  // CHECK: ptx: 0
  // CHECK: 1 1
  say("level", pisaModuleGetIr(module, "gpu-kernel", &ir, &length));
  // CHECK: level: 0
  say("no level", pisaModuleGetIr(module, "llvm", &ir, &length));
  // CHECK: no level: 1 expected a level to be one of {{.*}}'plan'{{.*}} but got
  // 'llvm'
  const char *bytes;
  say("object", pisaModuleGetObject(module, &bytes, &length));
  // CHECK: object: 1 expected a module for the CPU, but it is for sm_90

  int (*retain)(void **, int) = NULL, (*push)(void *) = NULL;
  *(void **)&retain = find("cuDevicePrimaryCtxRetain");
  *(void **)&push = find("cuCtxPushCurrent");
  void *context;
  retain(&context, 0);
  push(context);
  int64_t shape[] = {3, 2}, other[] = {2, 2};
  DLTensor xt = {.data = allocate(24),
                 .device = {kDLCUDA, 0},
                 .ndim = 2,
                 .dtype = {kDLFloat, 32, 1},
                 .shape = shape};
  DLTensor yt = xt;
  yt.data = allocate(24);
  PisaValue values[2] = {{.kind = PISA_VALUE_TENSOR, .as.tensor = &xt},
                         {.kind = PISA_VALUE_TENSOR, .as.tensor = &yt}};
  PisaRunInfo info = {sizeof(info), 1};
  say("call", pisaModuleCall(module, "copy", values, 2, &info));
  printf("%zu\n", info.scratch_bytes);
  // CHECK: call: 0
  // CHECK: 0
  void *stream = &info;
  say("stream",
      pisaModuleCallOnStream(module, "copy", values, 2, stream, NULL));
  // CHECK: stream: 0
  yt.shape = other;
  say("sizes", pisaModuleCall(module, "copy", values, 2, NULL));
  // CHECK: sizes: 1 the shapes of the inputs do not fit together:
  yt.shape = shape;
  xt.device.device_type = kDLCPU;
  say("place", pisaModuleCall(module, "copy", values, 2, NULL));
  // CHECK: place: 2 expected argument 0 of @copy to be tensor<?x2xf32>, but got
  // a tensor that is not on a CUDA device
  pisaModuleDestroy(module);
  xt.device.device_type = kDLCUDA;

  say("cpu", pisaModuleCreate(text, strlen(text), NULL, NULL, &module));
  printf("'%s'\n", pisaModuleGetChip(module));
  // CHECK: cpu: 0
  // CHECK: ''
  say("no ptx", pisaModuleGetPtx(module, &ptx, &length));
  // CHECK: no ptx: 1 expected a module for GPUs, but it is for the CPU
  say("no place", pisaModuleCall(module, "copy", values, 2, NULL));
  // CHECK: no place: 2 {{.*}} but got a tensor outside the CPU's memory
  say("no stream",
      pisaModuleCallOnStream(module, "copy", values, 2, stream, NULL));
  // CHECK: no stream: 1 expected no stream for a module for the CPU
  pisaModuleDestroy(module);
  release(xt.data);
  release(yt.data);
  // LEFT: fake driver: 2 launches; left: 0 allocations, 0 events, 0 modules
  return 0;
}
