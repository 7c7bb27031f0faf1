//===- CudaModule.cpp - Loading code on a device ----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaRuntime.h"

#include <cstring>

using namespace pisa;

namespace {

/// What every device lets a kernel have without being asked.
constexpr uint32_t defaultSharedBytes = 48 << 10;
constexpr size_t logBytes = 16 << 10;

bool isPtx(const std::string &image) {
  return image.compare(0, 4,
                       "\x7f"
                       "ELF") != 0;
}

/// What follows a directive of PTX, like ".target", up to the end of its word.
/// The directive begins a line.
std::string getDirective(const std::string &ptx, const char *directive) {
  size_t begin = 0;
  for (;; ++begin) {
    begin = ptx.find(directive, begin);
    if (begin == std::string::npos)
      return "unknown";
    if (begin == 0 || ptx[begin - 1] == '\n')
      break;
  }
  begin = ptx.find_first_not_of(" \t", begin + std::strlen(directive));
  if (begin == std::string::npos)
    return "unknown";
  return ptx.substr(begin, ptx.find_first_of(" \t\r\n,", begin) - begin);
}

std::string explain(cuda::Result result, const CudaDevice &device,
                    const std::string &image) {
  std::string driver =
      "the CUDA driver (" + device.getDriver().getVersionText() + ")";
  std::string code = isPtx(image)
                         ? "PTX of version " + getDirective(image, ".version") +
                               " for " + getDirective(image, ".target")
                         : "machine code";
  switch (result) {
  case cuda::UnsupportedPtxVersion:
    return driver + " is too old for " + code + " on " + device.describe();
  case cuda::NoBinaryForGpu:
  case cuda::InvalidPtx:
  case cuda::InvalidImage:
    return driver + " refused " + code + " on " + device.describe();
  default:
    return "cannot load " + code + " on " + device.describe();
  }
}

} // namespace

RuntimeOr<std::unique_ptr<CudaModule>>
CudaModule::load(std::shared_ptr<CudaDevice> device, const std::string &image) {
  const CudaDriver &driver = device->getDriver();
  // The driver reads PTX to the first null and trusts the sizes in a cubin.
  constexpr size_t minImageBytes = 64; // an ELF header
  if (image.size() < (isPtx(image) ? 1 : minImageBytes))
    return RuntimeStatus(RuntimeStatus::InvalidValue,
                         "expected PTX or a cubin, but got " +
                             std::to_string(image.size()) + " bytes");
  CudaDevice::Scope scope(*device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  std::vector<char> log(logBytes);
  cuda::JitOption options[] = {cuda::JitOption::ErrorLogBuffer,
                               cuda::JitOption::ErrorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  std::unique_ptr<CudaModule> module(new CudaModule(device));
  CudaDevice::RelaxedCapture relaxed(driver);
  cuda::Result result = driver.cuModuleLoadDataEx(
      &module->module, image.c_str(), std::size(options), options, values);
  if (result == cuda::Success)
    return module;
  module->module = nullptr;
  RuntimeStatus error =
      driver.makeError(explain(result, *device, image), result);
  if (!log[0])
    return error;
  return RuntimeStatus(error.getKind(), error.getMessage() + "\n" + log.data());
}

CudaModule::~CudaModule() {
  if (!module)
    return;
  CudaDevice::Scope scope(*device);
  device->getDriver().cuModuleUnload(module);
}

RuntimeOr<cuda::Function>
CudaModule::getFunction(const PlanKernel &kernel) const {
  const CudaDriver &driver = device->getDriver();
  std::string what = "kernel '" + kernel.name + "' on " + device->describe();
  CudaDevice::Scope scope(*device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  CudaDevice::RelaxedCapture relaxed(driver);
  cuda::Function function = nullptr;
  cuda::Result result =
      driver.cuModuleGetFunction(&function, module, kernel.name.c_str());
  if (result != cuda::Success)
    return driver.makeError("cannot find " + what, result);

  int maxThreads = 0, staticBytes = 0;
  result = driver.cuFuncGetAttribute(
      &maxThreads, cuda::FunctionAttribute::MaxThreads, function);
  if (result == cuda::Success)
    result = driver.cuFuncGetAttribute(
        &staticBytes, cuda::FunctionAttribute::StaticSharedBytes, function);
  if (result != cuda::Success)
    return driver.makeError("cannot inspect " + what, result);
  if (kernel.threads > uint32_t(maxThreads))
    return RuntimeStatus(RuntimeStatus::Failed,
                         what + ": expected at most " +
                             std::to_string(maxThreads) +
                             " threads, which its registers allow, but got " +
                             std::to_string(kernel.threads));
  int64_t sharedBytes = int64_t(kernel.sharedBytes) + staticBytes;
  if (sharedBytes > device->getMaxSharedBytes())
    return RuntimeStatus(RuntimeStatus::Failed,
                         what + " needs " + std::to_string(sharedBytes) +
                             " bytes of shared memory, but a block can have " +
                             std::to_string(device->getMaxSharedBytes()));

  if (sharedBytes > defaultSharedBytes)
    result = driver.cuFuncSetAttribute(
        function, cuda::FunctionAttribute::MaxDynamicSharedBytes,
        kernel.sharedBytes);
  if (result == cuda::Success && kernel.sharedBytes > 0)
    result = driver.cuFuncSetAttribute(
        function, cuda::FunctionAttribute::SharedMemoryCarveout, 100);
  if (result != cuda::Success)
    return driver.makeError("cannot give " + what + " " +
                                std::to_string(kernel.sharedBytes) +
                                " bytes of dynamic shared memory",
                            result);
  return function;
}
