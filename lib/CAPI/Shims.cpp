//===- Shims.cpp - What older C libraries lack ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

// LLVM's static libraries call this where they were built on glibc 2.36 or
// later; it would be all that keeps the library from running on 2.34.
extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value))
    abort();
  return value;
}
