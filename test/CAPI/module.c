/* A module from text: the IR after a level, an object, a call, and errors.
 *
 * RUN: %cc -std=c11 -Wall -Wextra -Werror %pisa_c_flags %s -o %t
 * RUN: %t | FileCheck %s
 */
#include "pisa-c/Module.h"

#include <stdio.h>
#include <string.h>

static const char *text =
    "func.func @copy(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>, %s: f32) ->\n"
    "    tensor<?x2xf32> {\n"
    "  %0 = linalg.copy ins(%x : tensor<?x2xf32>) outs(%y : tensor<?x2xf32>)\n"
    "      -> tensor<?x2xf32>\n"
    "  return %0 : tensor<?x2xf32>\n"
    "}\n";

static void say(const char *what, PisaStatus status) {
  printf("%s: %d %s\n", what, status, status ? pisaGetLastError() : "");
}

int main(void) {
  PisaModule *module;
  say("create", pisaModuleCreate(text, strlen(text), NULL, NULL, &module));
  // CHECK: create: 0
  puts(pisaModuleDescribe(module));
  // CHECK: [{"arguments":["tensor<?x2xf32>","tensor<?x2xf32>","f32"],"name":"copy","results":[1]}]
  const char *ir;
  size_t length;
  say("level", pisaModuleGetIr(module, "kernel", &ir, &length));
  printf("%d %d\n", strstr(ir, "memref<?x2xf32") != NULL, strlen(ir) == length);
  // CHECK: level: 0
  // CHECK: 1 1
  say("no level", pisaModuleGetIr(module, "attic", &ir, &length));
  // CHECK: no level: 1 expected a level to be one of {{.*}}'kernel'{{.*}} but got 'attic'
  const char *bytes;
  say("object", pisaModuleGetObject(module, &bytes, &length));
  printf("%d\n", memcmp(bytes, "\177ELF", 4) == 0);
  // CHECK: object: 0
  // CHECK: 1

  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  int64_t shape[] = {3, 2}, other[] = {2, 2};
  DLTensor xt = {.data = x, .device = {kDLCPU, 0}, .ndim = 2,
                 .dtype = {kDLFloat, 32, 1}, .shape = shape};
  DLTensor yt = xt;
  yt.data = y;
  PisaValue values[3] = {{.kind = PISA_VALUE_TENSOR, .as.tensor = &xt},
                         {.kind = PISA_VALUE_TENSOR, .as.tensor = &yt},
                         {.kind = PISA_VALUE_F32, .as.f32 = 2}};
  PisaRunInfo info = {sizeof(info), 0};
  say("call", pisaModuleCall(module, "copy", values, 3, &info));
  printf("%d\n", memcmp(x, y, sizeof(x)) == 0);
  // CHECK: call: 0
  // CHECK: 1
  say("count", pisaModuleCall(module, "copy", values, 2, NULL));
  // CHECK: count: 2 expected 3 arguments of @copy, but got 2
  say("name", pisaModuleCall(module, "move", values, 3, NULL));
  // CHECK: name: 1 expected a function of the module, but got 'move'
  yt.shape = other;
  say("sizes", pisaModuleCall(module, "copy", values, 3, NULL));
  // CHECK: sizes: 1 the shapes of the inputs do not fit together:
  yt.shape = shape;
  xt.dtype.bits = 16;
  say("elements", pisaModuleCall(module, "copy", values, 3, NULL));
  // CHECK: elements: 2 expected argument 0 of @copy to be tensor<?x2xf32>, but got other elements
  values[2].kind = PISA_VALUE_I32;
  xt.dtype.bits = 32;
  say("kind", pisaModuleCall(module, "copy", values, 3, NULL));
  // CHECK: kind: 2 expected argument 2 of @copy to be f32, but got a value of another kind
  pisaModuleDestroy(module);

  say("text", pisaModuleCreate("func", 4, NULL, NULL, &module));
  // CHECK: text: 1 expected MLIR, but it cannot be parsed:
  say("pipeline", pisaModuleCreate(text, strlen(text), "polish", NULL, &module));
  // CHECK: pipeline: 1 expected a pass pipeline, but got 'polish':
  say("cse", pisaModuleCreate(text, strlen(text), "canonicalize,cse", NULL, &module));
  // CHECK: cse: 0
  say("no code", pisaModuleCall(module, "copy", values, 3, NULL));
  // CHECK: no code: 2
  say("no object", pisaModuleGetObject(module, &bytes, &length));
  // CHECK: no object: 1 expected the pipeline to end in the LLVM dialect, but it left 'func.func'
  pisaModuleDestroy(module);
  return 0;
}
