/*===- Status.h - Errors and versions of the C API ---------------*- C -*-===*\
|*                                                                            *|
|* Part of the PISA project, under the Apache License v2.0 with LLVM          *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef PISA_C_STATUS_H
#define PISA_C_STATUS_H

#include <stddef.h>
#include <stdint.h>

#define PISA_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Every function may be called from any thread at any time; a handle may be
 * used by several threads at once, but not while it is destroyed. Structs begin
 * with their size, so that a later library knows an earlier caller. */

typedef enum PisaStatus {
  PISA_SUCCESS = 0,
  PISA_INVALID_VALUE = 1, /* a size, an option or IR that the rules forbid */
  PISA_INVALID_TYPE = 2,  /* a dtype, a device, a missing tensor */
  PISA_UNSUPPORTED = 3,   /* within the method, but not built */
  PISA_OUT_OF_MEMORY = 4,
  PISA_FAILED = 5         /* the system, the compiler, a check at run time */
} PisaStatus;

/* What the last call on this thread that did not succeed said; "" before the
 * first. Valid until the next such call on this thread. */
PISA_C_API const char *pisaGetLastError(void);

/* What a call took. */
typedef struct PisaRunInfo {
  size_t struct_size;
  size_t scratch_bytes; /* above the tensors, at the peak */
} PisaRunInfo;

/* "0.1.0" */
PISA_C_API const char *pisaGetVersion(void);
/* The version and the linker's id of this very build. */
PISA_C_API const char *pisaGetBuildId(void);
/* The version of LLVM inside. */
PISA_C_API const char *pisaGetLlvmVersion(void);

/* Threads of CPU calls, the calling one among them; 0 stands for one a core.
 * Calls that are running keep theirs. */
PISA_C_API PisaStatus pisaSetNumThreads(unsigned count);
PISA_C_API unsigned pisaGetNumThreads(void);

/* The folder for compiled kernels where none is named: $PISA_CACHE_DIR, or
 * pisa/objects in $XDG_CACHE_HOME or ~/.cache; "" if there is none. */
PISA_C_API const char *pisaGetDefaultCacheDirectory(void);

#ifdef __cplusplus
}
#endif

#endif /* PISA_C_STATUS_H */
