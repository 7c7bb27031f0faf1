//===- ThreadPool.cpp - Threads that run tasks ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/ThreadPool.h"

#include <algorithm>

using namespace pisa;

/// True while this thread runs a body, so that a nested loop does not wait for
/// the threads it occupies.
static thread_local bool insideBody = false;

ThreadPool::ThreadPool(unsigned numThreads) {
  if (numThreads == 0)
    numThreads = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < numThreads; ++i)
    workers.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::drain() {
  insideBody = true;
  for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1))
    (*body)(i, i + 1);
  insideBody = false;
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    lock.unlock();
    drain();
    lock.lock();
    if (--busy == 0)
      done.notify_one();
  }
}

void ThreadPool::parallelFor(
    int64_t total, const std::function<void(int64_t, int64_t)> &task) {
  if (total <= 0)
    return;
  if (insideBody || workers.empty() || total == 1) {
    task(0, total);
    return;
  }
  std::lock_guard<std::mutex> mine(turn);
  {
    std::lock_guard<std::mutex> lock(mutex);
    body = &task;
    count = total;
    next = 0;
    busy = workers.size();
    ++generation;
  }
  wake.notify_all();
  drain();
  // Every worker passes through each loop, so that none still reads this one's
  // state when the next begins.
  std::unique_lock<std::mutex> lock(mutex);
  done.wait(lock, [&] { return busy == 0; });
  body = nullptr;
}
