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
/* The same for NVIDIA GPUs: a null `pipeline` is pisa-nvptx-pipeline, `chip` is
 * LLVM's name of the GPU ("sm_90"; null: that of the first CUDA device, or
 * sm_80 without one). Needs no GPU. */
PISA_C_API PisaStatus pisaModuleCreateForCuda(const char *text, size_t length,
                                              const char *pipeline,
                                              const char *chip,
                                              PisaModule **module);
PISA_C_API void pisaModuleDestroy(PisaModule *module);

/* The IR after a level: problem, phase, tile, kernel, llvm; for GPUs problem,
 * phase, tile, gpu-kernel, plan; "" stands for the last one, the only one there
 * is with a pipeline of one's own. The text lives as long as the module. */
PISA_C_API PisaStatus pisaModuleGetIr(PisaModule *module, const char *level,
                                      const char **text, size_t *length);

/* A relocatable ELF object of the module. Lives as long as the module. */
PISA_C_API PisaStatus pisaModuleGetObject(PisaModule *module,
                                          const char **bytes, size_t *length);

/* The PTX of a module for GPUs. Lives as long as the module. */
PISA_C_API PisaStatus pisaModuleGetPtx(PisaModule *module, const char **text,
                                       size_t *length);
/* The chip that a module is for, "" for the CPU. Lives as long as the module.
 */
PISA_C_API const char *pisaModuleGetChip(PisaModule *module);

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
 * dtypes and shapes are checked, also against each other. A module for GPUs
 * takes tensors on one device and works on its default stream. */
PISA_C_API PisaStatus pisaModuleCall(PisaModule *module, const char *function,
                                     const PisaValue *arguments, size_t count,
                                     PisaRunInfo *info);

/* The same on `stream`, a CUstream of the tensors' device (null: the default
 * stream), without waiting; null for the CPU. */
PISA_C_API PisaStatus pisaModuleCallOnStream(PisaModule *module,
                                             const char *function,
                                             const PisaValue *arguments,
                                             size_t count, void *stream,
                                             PisaRunInfo *info);

#ifdef __cplusplus
}
#endif

#endif /* PISA_C_MODULE_H */
