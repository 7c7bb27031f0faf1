//===- Status.cpp - Errors, versions, threads -------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "pisa/Compiler/ObjectCache.h"

#include "llvm/Config/llvm-config.h"
#include <mutex>
#include <pthread.h>

using namespace pisa;

static thread_local std::string lastError;

static PisaStatus getStatus(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::InvalidValue:
    return PISA_INVALID_VALUE;
  case ErrorKind::InvalidType:
    return PISA_INVALID_TYPE;
  case ErrorKind::Unsupported:
    return PISA_UNSUPPORTED;
  case ErrorKind::OutOfMemory:
    return PISA_OUT_OF_MEMORY;
  case ErrorKind::Failed:
    break;
  }
  return PISA_FAILED;
}

PisaStatus capi::finish(llvm::Error error) {
  if (!error)
    return PISA_SUCCESS;
  PisaStatus status = PISA_FAILED;
  lastError.clear();
  llvm::handleAllErrors(
      std::move(error),
      [&](const StatusError &known) {
        status = getStatus(known.getKind());
        lastError = known.message();
      },
      [&](const llvm::ErrorInfoBase &other) { lastError = other.message(); });
  return status;
}

llvm::Error capi::checkStruct(const char *name, const void *pointer,
                              size_t size, size_t expected) {
  if (!pointer)
    return makeError(ErrorKind::InvalidType, llvm::Twine("expected a ") + name +
                                                 ", but got a null pointer");
  if (size != expected)
    return makeError(ErrorKind::InvalidValue,
                     llvm::Twine("expected struct_size of ") + name +
                         " to be " + llvm::Twine(expected) + ", but got " +
                         llvm::Twine(size));
  return llvm::Error::success();
}

namespace {
/// Never destroyed: threads may still run when static objects go.
struct PoolHolder {
  std::mutex mutex;
  std::shared_ptr<ThreadPool> pool;
  unsigned threads = 0;
};
} // namespace

static PoolHolder *holder = new PoolHolder();

static PoolHolder &getHolder() {
  // In a child nothing of the parent's can be trusted: a thread that is not
  // there may hold its locks. It is left as it is.
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    unsigned threads = holder->threads;
    holder = new PoolHolder();
    holder->threads = threads;
  });
  (void)registered;
  return *holder;
}

std::shared_ptr<ThreadPool> capi::getPool() {
  PoolHolder &h = getHolder();
  std::lock_guard<std::mutex> lock(h.mutex);
  if (!h.pool)
    h.pool = std::make_shared<ThreadPool>(h.threads);
  return h.pool;
}

const char *pisaGetLastError() { return lastError.c_str(); }
const char *pisaGetVersion() { return PISA_VERSION; }
const char *pisaGetLlvmVersion() { return LLVM_VERSION_STRING; }

const char *pisaGetBuildId() {
  static const std::string id = getBuildId();
  return id.c_str();
}

PisaStatus pisaSetNumThreads(unsigned count) {
  constexpr unsigned most = 4096;
  if (count > most)
    return capi::finish(
        makeError(ErrorKind::InvalidValue,
                  "expected the number of threads to be in [0, " +
                      llvm::Twine(most) + "], but got " + llvm::Twine(count)));
  PoolHolder &h = getHolder();
  std::shared_ptr<ThreadPool> old; // goes, with its threads, after the lock
  std::lock_guard<std::mutex> lock(h.mutex);
  old.swap(h.pool);
  h.threads = count;
  return PISA_SUCCESS;
}

unsigned pisaGetNumThreads() { return capi::getPool()->getNumThreads(); }

const char *pisaGetDefaultCacheDirectory() {
  static thread_local std::string directory;
  directory = ObjectCache::getDefaultDirectory();
  return directory.c_str();
}
