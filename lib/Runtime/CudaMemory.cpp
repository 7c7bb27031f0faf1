//===- CudaMemory.cpp - Arrays and times on devices -------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaMemory.h"

#include <utility>

using namespace pisa;

//===----------------------------------------------------------------------===//
// CudaBuffer
//===----------------------------------------------------------------------===//

RuntimeOr<CudaBuffer> CudaBuffer::create(std::shared_ptr<CudaDevice> device,
                                         size_t bytes) {
  CudaBuffer buffer(std::move(device), bytes);
  if (bytes == 0)
    return buffer;
  CudaDevice::Scope scope(*buffer.device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  const CudaDriver &driver = buffer.device->getDriver();
  cuda::Address address = 0;
  cuda::Result result = driver.cuMemAlloc(&address, bytes);
  if (result != cuda::Success)
    return driver.makeError("cannot allocate " + std::to_string(bytes) +
                                " bytes on " + buffer.device->describe(),
                            result);
  buffer.address = address;
  return buffer;
}

CudaBuffer &CudaBuffer::operator=(CudaBuffer &&other) {
  std::swap(device, other.device);
  std::swap(address, other.address);
  std::swap(bytes, other.bytes);
  return *this;
}

CudaBuffer::~CudaBuffer() {
  if (!address)
    return;
  CudaDevice::Scope scope(*device);
  if (!scope.getStatus().failed())
    device->getDriver().cuMemFree(address);
}

RuntimeStatus CudaBuffer::upload(const void *data) const {
  if (!address)
    return {};
  CudaDevice::Scope scope(*device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  cuda::Result result = device->getDriver().cuMemcpyHtoD(address, data, bytes);
  if (result == cuda::Success)
    return {};
  return device->getDriver().makeError("cannot copy " + std::to_string(bytes) +
                                           " bytes to " + device->describe(),
                                       result);
}

RuntimeStatus CudaBuffer::download(void *data) const {
  if (!address)
    return {};
  CudaDevice::Scope scope(*device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  cuda::Result result = device->getDriver().cuMemcpyDtoH(data, address, bytes);
  if (result == cuda::Success)
    return {};
  return device->getDriver().makeError("cannot copy " + std::to_string(bytes) +
                                           " bytes from " + device->describe(),
                                       result);
}

//===----------------------------------------------------------------------===//
// Waiting and timing
//===----------------------------------------------------------------------===//

RuntimeStatus pisa::waitForCuda(const CudaDevice &device,
                                const std::string &what) {
  CudaDevice::Scope scope(device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  cuda::Result result = device.getDriver().cuStreamSynchronize(nullptr);
  if (result == cuda::Success)
    return {};
  return device.getDriver().makeError(what + " failed on " + device.describe(),
                                      result);
}

RuntimeOr<float> pisa::timeOnCuda(const CudaDevice &device,
                                  const std::function<RuntimeStatus()> &body) {
  CudaDevice::Scope scope(device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  const CudaDriver &driver = device.getDriver();
  struct Events {
    ~Events() {
      for (cuda::Event event : {begin, end})
        if (event)
          driver.cuEventDestroy(event);
    }
    const CudaDriver &driver;
    cuda::Event begin = nullptr, end = nullptr;
  } events{driver};
  cuda::Result result = driver.cuEventCreate(&events.begin, /*flags=*/0);
  if (result == cuda::Success)
    result = driver.cuEventCreate(&events.end, /*flags=*/0);
  if (result == cuda::Success)
    result = driver.cuEventRecord(events.begin, /*stream=*/nullptr);
  if (result == cuda::Success) {
    if (RuntimeStatus status = body(); status.failed())
      return status;
    result = driver.cuEventRecord(events.end, /*stream=*/nullptr);
  }
  if (result == cuda::Success)
    result = driver.cuEventSynchronize(events.end);
  float milliseconds = 0;
  if (result == cuda::Success)
    result = driver.cuEventElapsedTime(&milliseconds, events.begin, events.end);
  if (result != cuda::Success)
    return driver.makeError("cannot time work on " + device.describe(), result);
  return milliseconds;
}
