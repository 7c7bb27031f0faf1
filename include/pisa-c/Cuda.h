/*===- Cuda.h - NVIDIA GPUs from C -------------------------------*- C -*-===*\
|*                                                                            *|
|* Part of the PISA project, under the Apache License v2.0 with LLVM          *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef PISA_C_CUDA_H
#define PISA_C_CUDA_H

#include "pisa-c/Status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fails, and says why, where there is no driver. */
PISA_C_API PisaStatus pisaGetCudaDeviceCount(int32_t *count);

typedef struct PisaCudaDevice {
  size_t struct_size;
  char name[256];
  char chip[16];             /* LLVM's name of what we compile for; "": none */
  int32_t compute_capability; /* 90 is 9.0 */
  int32_t multiprocessors;
  int32_t max_shared_bytes;   /* of a block */
  int32_t driver_version;     /* 13020 is 13.2 */
} PisaCudaDevice;

PISA_C_API PisaStatus pisaGetCudaDevice(int32_t ordinal,
                                        PisaCudaDevice *device);

/* The ptxas that makes machine code; "" if there is none, and then the driver
 * makes it, each time. Valid until the next such call on this thread. */
PISA_C_API const char *pisaFindPtxas(void);

#ifdef __cplusplus
}
#endif

#endif /* PISA_C_CUDA_H */
