//===- CpuRuntime.h - What compiled CPU code calls --------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_CPURUNTIME_H
#define PISA_RUNTIME_CPURUNTIME_H

#include "pisa/Runtime/ThreadPool.h"

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

// UBSan checks an indirect call by the type that a compiler wrote before the
// callee; compiled code of ours has none, and what lies there may not be
// mapped.
#ifdef __clang__
#define PISA_CALLS_COMPILED_CODE __attribute__((no_sanitize("function")))
#else
#define PISA_CALLS_COMPILED_CODE
#endif

namespace pisa {

/// One call of compiled code: its threads, its scratch memory, and the first
/// error it reported. Compiled code finds it through the thread that runs it,
/// so calls on different threads do not meet.
class Invocation {
public:
  /// `scratchLimit` bounds the bytes of scratch alive at once; 0 means no
  /// bound.
  explicit Invocation(ThreadPool &pool, size_t scratchLimit = 0)
      : pool(pool), scratchLimit(scratchLimit) {}
  ~Invocation();
  Invocation(const Invocation &) = delete;
  Invocation &operator=(const Invocation &) = delete;

  /// Runs `entry` (compiled code). Returns the first error that it reported, if
  /// any; its outputs are unspecified then. Scratch that an abandoned call left
  /// behind is freed.
  std::optional<std::string> run(const std::function<void()> &entry);

  /// The most scratch that was alive at once, in bytes.
  size_t getPeakScratch() const { return peakScratch; }

  // For compiled code, through the symbols below.
  void parallelFor(void (*task)(void *, int64_t, int64_t), void *captures,
                   int64_t count);
  void *allocate(size_t alignment, size_t size);
  void release(void *pointer);
  void report(std::string message);

private:
  /// Leaves the running task or entry; compiled code has no destructors to run.
  [[noreturn]] void abandon();
  /// Runs compiled code so that `abandon` returns here.
  void guarded(const std::function<void()> &code);

  ThreadPool &pool;
  size_t scratchLimit;
  std::mutex mutex; // guards all below
  std::optional<std::string> error;
  std::unordered_map<void *, size_t> live;
  size_t scratch = 0;
  size_t peakScratch = 0;
};

/// Name and address of a function that compiled code may call.
struct RuntimeSymbol {
  const char *name;
  void *address;
};

/// The functions that compiled CPU code calls:
///   pisaParallelFor(task, captures, count)
///   pisaReportDuplicateBlock(batch, kvHead, queryBlock, block)
///   _mlir_memref_to_llvm_{alloc,aligned_alloc,free}: scratch
std::vector<RuntimeSymbol> getCpuRuntimeSymbols();

} // namespace pisa

#endif // PISA_RUNTIME_CPURUNTIME_H
