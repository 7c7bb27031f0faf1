//===- SanitizerOptions.cpp - Defaults of sanitized executables -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// LLVM's bump allocators poison what they hand out later, but only in code that is
// compiled with ASan. Debian's LLVM libraries are not: they would touch memory that
// headers inlined into our code have poisoned.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
