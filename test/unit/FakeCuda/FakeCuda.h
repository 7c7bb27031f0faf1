//===- FakeCuda.h - A CUDA driver without a GPU -----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TEST_UNIT_FAKECUDA_FAKECUDA_H
#define PISA_TEST_UNIT_FAKECUDA_FAKECUDA_H

#include "pisa/Runtime/CudaDriver.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace pisa::test {

struct FakeLaunch {
  std::string kernel;
  unsigned grid[3];
  unsigned threads, sharedBytes;
  cuda::Stream stream;
  int device;
  std::vector<std::string> parameters; // bytes
};

struct FakeMemory {
  enum Kind { Scratch, Tensor, Managed };
  Kind kind;
  int device;
  size_t bytes;
};

/// The state of the fake driver, which tests set and look at.
struct FakeCuda {
  static constexpr int maxDevices = 4;
  FakeCuda();
  ~FakeCuda();

  // What it is like.
  int numDevices = 2;
  int capability = 90; // of device 0; that of device 1 is one more
  int numMultiprocessors = 132;
  int maxSharedBytes = 232448;
  int maxThreads = 1024;     // of any kernel
  int staticSharedBytes = 0; // of any kernel
  int hasPools = 1;
  bool isCapturing = false; // a stream, in the strictest mode
  uint64_t checkStatus = UINT64_MAX; // what copies from scratch memory give
  std::string jitLog;
  /// What a function returns, in place of doing its work.
  std::map<std::string, int> failures;

  // What there is.
  int numRetained[maxDevices] = {};
  int numModules = 0, numPools = 0, numEvents = 0;
  std::map<cuda::Address, FakeMemory> memory;
  // What has happened.
  std::vector<FakeLaunch> launches;
  std::vector<std::string> calls;      // of functions, in order
  std::vector<std::string> attributes; // that functions were given

  int count(const std::string &function) const {
    int result = 0;
    for (const std::string &call : calls)
      result += call == function;
    return result;
  }

  std::recursive_mutex mutex; // held by the functions
};

} // namespace pisa::test

/// The fake driver exports this, beside cuGetProcAddress_v2.
extern "C" pisa::test::FakeCuda *getFakeCuda();
/// Named in this variable: a function that the fake driver lacks.
#define PISA_FAKE_CUDA_LACKS "PISA_FAKE_CUDA_LACKS"
// What it is like: numbers; a function and the error that it returns, as in
// "cuMemAlloc=2"; any value: what is left at the end is said on stderr.
#define PISA_FAKE_CUDA_DEVICES "PISA_FAKE_CUDA_DEVICES"
#define PISA_FAKE_CUDA_CAPABILITY "PISA_FAKE_CUDA_CAPABILITY"
#define PISA_FAKE_CUDA_CHECK "PISA_FAKE_CUDA_CHECK"
#define PISA_FAKE_CUDA_FAILS "PISA_FAKE_CUDA_FAILS"
#define PISA_FAKE_CUDA_REPORT "PISA_FAKE_CUDA_REPORT"

#endif // PISA_TEST_UNIT_FAKECUDA_FAKECUDA_H
