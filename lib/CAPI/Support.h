//===- Support.h - What the C API's files share -----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CAPI_SUPPORT_H
#define PISA_LIB_CAPI_SUPPORT_H

#include "pisa-c/Status.h"
#include "pisa/Compiler/Status.h"
#include "pisa/Runtime/ThreadPool.h"

#include <memory>

namespace pisa::capi {

/// Keeps the message for pisaGetLastError, and returns the status.
PisaStatus finish(llvm::Error error);

/// The threads of CPU calls; held for the length of a call.
std::shared_ptr<ThreadPool> getPool();

/// An error unless a struct of the caller's is as large as ours.
llvm::Error checkStruct(const char *name, const void *pointer, size_t size,
                        size_t expected);

} // namespace pisa::capi

#endif // PISA_LIB_CAPI_SUPPORT_H
