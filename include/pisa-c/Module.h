/*===- Module.h - MLIR modules from C ----------------------------*- C -*-===*\
|*                                                                            *|
|* Part of the PISA project, under the Apache License v2.0 with LLVM          *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef PISA_C_MODULE_H
#define PISA_C_MODULE_H

#include "pisa-c/Status.h"

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PisaModule PisaModule;

/* Parses MLIR (`length` bytes of text) and lowers it: with a null `pipeline`,
 * by pisa-cpu-pipeline for `cpu` (null: this one), level by level; otherwise by
 * that pipeline in MLIR's textual form, without an enclosing builtin.module. */
PISA_C_API PisaStatus pisaModuleCreate(const char *text, size_t length,
                                       const char *pipeline, const char *cpu,
                                       PisaModule **module);
PISA_C_API void pisaModuleDestroy(PisaModule *module);

/* The IR after a level: problem, phase, tile, kernel, llvm; "" stands for the
 * last one, the only one there is with a pipeline of one's own. The text lives
 * as long as the module. */
PISA_C_API PisaStatus pisaModuleGetIr(PisaModule *module, const char *level,
                                      const char **text, size_t *length);

/* A relocatable ELF object of the module. Lives as long as the module. */
PISA_C_API PisaStatus pisaModuleGetObject(PisaModule *module,
                                          const char **bytes, size_t *length);

/* The functions as they were before lowering, as JSON: a list of objects with
 * name, arguments (their types) and results (for each, the argument whose
 * buffer holds it; -1 if none does, and then it cannot be called). Lives as
 * long as the module. */
PISA_C_API const char *pisaModuleDescribe(PisaModule *module);

typedef enum PisaValueKind {
  PISA_VALUE_TENSOR = 0,
  PISA_VALUE_F32 = 1,
  PISA_VALUE_I32 = 2,
  PISA_VALUE_INDEX = 3
} PisaValueKind;

typedef struct PisaValue {
  int32_t kind; /* PisaValueKind */
  union {
    const DLTensor *tensor;
    float f32;
    int32_t i32;
    int64_t index;
  } as;
} PisaValue;

/* Calls a function with the arguments that it had before lowering. Kinds,
 * dtypes and shapes are checked, also against each other. */
PISA_C_API PisaStatus pisaModuleCall(PisaModule *module, const char *function,
                                     const PisaValue *arguments, size_t count,
                                     PisaRunInfo *info);

#ifdef __cplusplus
}
#endif

#endif /* PISA_C_MODULE_H */
