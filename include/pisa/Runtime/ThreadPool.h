//===- ThreadPool.h - Threads that run tasks --------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_THREADPOOL_H
#define PISA_RUNTIME_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pisa {

/// A fixed set of threads that share the iterations of one loop at a time. No
/// OpenMP: its runtimes clash with those of the frameworks we are loaded into.
class ThreadPool {
public:
  /// `numThreads` threads work on a loop, the calling one among them; 0 means
  /// one for each core.
  explicit ThreadPool(unsigned numThreads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned getNumThreads() const { return workers.size() + 1; }

  /// Calls `body(begin, end)` for disjoint ranges that cover [0, count), and
  /// returns when all are done. Ranges are handed out in ascending order as
  /// threads become free. `body` must not throw. A call from inside a body runs
  /// on that thread alone; calls from different threads take turns.
  void parallelFor(int64_t count,
                   const std::function<void(int64_t, int64_t)> &body);

private:
  void work();
  void drain();

  std::vector<std::thread> workers;
  std::mutex turn; // held by the loop that runs
  std::mutex mutex;
  std::condition_variable wake, done;
  // The current loop; guarded by `mutex`, but for `next`.
  const std::function<void(int64_t, int64_t)> *body = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  uint64_t generation = 0;
  unsigned busy = 0;
  bool stopping = false;
};

} // namespace pisa

#endif // PISA_RUNTIME_THREADPOOL_H
