//===- CudaDriver.cpp - Finding the CUDA driver -----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaDriver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>

using namespace pisa;

namespace {

/// The interface we declare is that of CUDA 12.0, which newer drivers keep.
constexpr int interfaceVersion = 12000;

using GetProcAddress = cuda::Result (*)(const char *name, void **function,
                                        int version, uint64_t flags,
                                        int *status);

RuntimeStatus failure(std::string message) {
  return {RuntimeStatus::Failed, std::move(message)};
}

std::string toText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

} // namespace

std::string CudaDriver::getVersionText() const { return toText(version); }

std::string CudaDriver::describe(cuda::Result result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::string message =
      name ? name : "error " + std::to_string(static_cast<int>(result));
  return text ? message + " (" + text + ")" : message;
}

RuntimeStatus CudaDriver::makeError(const std::string &what,
                                    cuda::Result result) const {
  return {result == cuda::OutOfMemory ? RuntimeStatus::OutOfMemory
                                      : RuntimeStatus::Failed,
          what + ": " + describe(result)};
}

RuntimeStatus CudaDriver::resolve(void *library, const std::string &name) {
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress) {
    // Drivers before 12.0; all have this one function.
    auto getVersion = reinterpret_cast<decltype(cuDriverGetVersion)>(
        dlsym(library, "cuDriverGetVersion"));
    int version = 0;
    if (!getVersion || getVersion(&version) != cuda::Success)
      return failure("no CUDA driver: " + name + " is none");
    return failure("the CUDA driver is too old: expected at least " +
                   toText(interfaceVersion) + ", but it is of " +
                   toText(version));
  }
  std::string missing;
  auto find = [&](const char *function) {
    void *address = nullptr;
    cuda::Result result = getProcAddress(function, &address, interfaceVersion,
                                         /*flags=*/0, /*status=*/nullptr);
    if ((result != cuda::Success || !address) && missing.empty())
      missing = function;
    return address;
  };
#define PISA_CUDA_RESOLVE(function, parameters)                                \
  function = reinterpret_cast<decltype(function)>(find(#function));
  PISA_CUDA_FUNCTIONS(PISA_CUDA_RESOLVE)
#undef PISA_CUDA_RESOLVE
  if (missing.empty())
    return {};
  return failure("the CUDA driver lacks " + missing);
}

RuntimeOr<const CudaDriver *> CudaDriver::load() {
  const char *variable = std::getenv("PISA_CUDA_DRIVER");
  std::string name = variable && *variable ? variable : "libcuda.so.1";
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return failure("no CUDA driver: " + name + " could not be loaded (" +
                   (reason ? reason : "unknown reason") + ")");
  }
  // The library stays loaded: the driver does not survive being unloaded.
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
  if (RuntimeStatus status = driver->resolve(library, name); status.failed())
    return status;
  cuda::Result result = driver->cuInit(0);
  if (result == cuda::NoDevice)
    return driver->makeError("no CUDA device", result);
  if (result != cuda::Success)
    return driver->makeError("cannot initialize CUDA", result);
  result = driver->cuDriverGetVersion(&driver->version);
  if (result != cuda::Success)
    return driver->makeError("cannot get the CUDA driver's version", result);
  return driver.release();
}

RuntimeOr<const CudaDriver *> CudaDriver::get() {
  // Never destroyed: others may use it while the process ends.
  static const auto *driver = new RuntimeOr<const CudaDriver *>(load());
  return *driver;
}
