//===- CpuRuntime.cpp - What compiled CPU code calls ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CpuRuntime.h"

#include "pisa/Runtime/CheckMessage.h"

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdlib>

using namespace pisa;

namespace {
/// What this thread is running: set by `guarded`, read by the symbols.
struct ThreadState {
  Invocation *invocation = nullptr;
  jmp_buf *exit = nullptr;
};
thread_local ThreadState current;
} // namespace

Invocation::~Invocation() {
  for (auto &[pointer, size] : live)
    std::free(pointer);
}

void Invocation::guarded(const std::function<void()> &code) {
  ThreadState outer = current;
  jmp_buf exit;
  current = {this, &exit};
  // Between here and `code` nothing with a destructor is alive.
  if (setjmp(exit) == 0)
    code();
  current = outer;
}

void Invocation::abandon() { longjmp(*current.exit, 1); }

std::optional<std::string> Invocation::run(const std::function<void()> &entry) {
  guarded(entry);
  for (auto &[pointer, size] : live)
    std::free(pointer);
  live.clear();
  scratch = 0;
  std::optional<std::string> result;
  result.swap(error);
  return result;
}

using Task = void (*)(void *, int64_t, int64_t);

PISA_CALLS_COMPILED_CODE static void runTask(Task task, void *captures,
                                             int64_t begin, int64_t end) {
  task(captures, begin, end);
}

void Invocation::parallelFor(void (*task)(void *, int64_t, int64_t),
                             void *captures, int64_t count) {
  std::atomic<bool> failed{false};
  pool.parallelFor(count, [&](int64_t begin, int64_t end) {
    if (failed.load(std::memory_order_relaxed))
      return;
    bool finished = false;
    guarded([&] {
      runTask(task, captures, begin, end);
      finished = true;
    });
    if (!finished)
      failed = true;
  });
  // The code after the loop relies on what it wrote.
  if (failed)
    abandon();
}

void *Invocation::allocate(size_t alignment, size_t size) {
  alignment = std::max(alignment, sizeof(void *));
  void *pointer = nullptr;
  bool overLimit;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // Reserved before it is allocated: threads must not pass the check together.
    overLimit = scratchLimit && scratch + size > scratchLimit;
    if (!overLimit)
      scratch += size;
  }
  if (!overLimit &&
      posix_memalign(&pointer, alignment, std::max<size_t>(size, 1)))
    pointer = nullptr;
  if (!pointer) {
    report(overLimit ? "expected at most " + std::to_string(scratchLimit) +
                           " bytes of scratch, but the call needs more"
                     : "out of memory: " + std::to_string(size) +
                           " bytes of scratch could not be allocated");
    abandon();
  }
  std::lock_guard<std::mutex> lock(mutex);
  live[pointer] = size;
  peakScratch = std::max(peakScratch, scratch);
  return pointer;
}

void Invocation::release(void *pointer) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = live.find(pointer);
    if (it == live.end())
      return;
    scratch -= it->second;
    live.erase(it);
  }
  std::free(pointer);
}

void Invocation::report(std::string message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!error)
    error = std::move(message);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static void parallelFor(void (*task)(void *, int64_t, int64_t), void *captures,
                        int64_t count) {
  current.invocation->parallelFor(task, captures, count);
}

static void reportDuplicateBlock(int64_t batch, int64_t kvHead,
                                 int64_t queryBlock, int64_t block) {
  current.invocation->report(
      describeDuplicateBlock(batch, kvHead, queryBlock, block));
}

static void *allocate(size_t size) {
  return current.invocation->allocate(alignof(std::max_align_t), size);
}
static void *alignedAllocate(size_t alignment, size_t size) {
  return current.invocation->allocate(alignment, size);
}
static void release(void *pointer) { current.invocation->release(pointer); }

std::vector<RuntimeSymbol> pisa::getCpuRuntimeSymbols() {
  return {
      {"pisaParallelFor", reinterpret_cast<void *>(parallelFor)},
      {"pisaReportDuplicateBlock",
       reinterpret_cast<void *>(reportDuplicateBlock)},
      {"_mlir_memref_to_llvm_alloc", reinterpret_cast<void *>(allocate)},
      {"_mlir_memref_to_llvm_aligned_alloc",
       reinterpret_cast<void *>(alignedAllocate)},
      {"_mlir_memref_to_llvm_free", reinterpret_cast<void *>(release)},
  };
}
