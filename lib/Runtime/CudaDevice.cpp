//===- CudaDevice.cpp - Devices, contexts and memory ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaRuntime.h"

using namespace pisa;

/// How much scratch memory stays with us between calls. Without it, the memory
/// goes back to the system at each synchronization, and the next call waits
/// for it anew.
static constexpr uint64_t keptScratchBytes = uint64_t(256) << 20;

RuntimeOr<int> pisa::getCudaDeviceCount() {
  RuntimeOr<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.getStatus();
  int count = 0;
  cuda::Result result = (*driver)->cuDeviceGetCount(&count);
  if (result != cuda::Success)
    return (*driver)->makeError("cannot count the CUDA devices", result);
  return count;
}

RuntimeOr<CudaLocation> pisa::findCudaLocation(const void *address) {
  RuntimeOr<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.getStatus();
  unsigned type = 0, isManaged = 0;
  int ordinal = 0;
  cuda::PointerAttribute attributes[] = {cuda::PointerAttribute::MemoryType,
                                         cuda::PointerAttribute::IsManaged,
                                         cuda::PointerAttribute::DeviceOrdinal};
  void *values[] = {&type, &isManaged, &ordinal};
  // Of memory that CUDA does not know, all are 0.
  cuda::Result result = (*driver)->cuPointerGetAttributes(
      std::size(attributes), attributes, values,
      reinterpret_cast<uintptr_t>(address));
  if (result != cuda::Success)
    return (*driver)->makeError("cannot tell which device an address is on",
                                result);
  CudaLocation location;
  if (isManaged)
    location.kind = CudaLocation::Managed;
  else if (type == cuda::memoryTypeDevice)
    location = {CudaLocation::Device, ordinal};
  return location;
}

//===----------------------------------------------------------------------===//
// CudaDevice
//===----------------------------------------------------------------------===//

RuntimeOr<std::shared_ptr<CudaDevice>> CudaDevice::get(int ordinal) {
  RuntimeOr<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.getStatus();
  RuntimeOr<int> count = getCudaDeviceCount();
  if (!count)
    return count.getStatus();
  if (ordinal < 0 || ordinal >= *count)
    return RuntimeStatus(RuntimeStatus::InvalidValue,
                         *count == 0
                             ? std::string("no CUDA device")
                             : "expected a CUDA device of 0 to " +
                                   std::to_string(*count - 1) + ", but got " +
                                   std::to_string(ordinal));

  // Never destroyed: others may use them while the process ends.
  static auto &mutex = *new std::mutex;
  static auto &devices = *new std::vector<std::weak_ptr<CudaDevice>>;
  std::lock_guard<std::mutex> lock(mutex);
  if (devices.size() <= size_t(ordinal))
    devices.resize(ordinal + 1);
  if (std::shared_ptr<CudaDevice> device = devices[ordinal].lock())
    return device;
  std::shared_ptr<CudaDevice> device(new CudaDevice(**driver, ordinal));
  if (RuntimeStatus status = device->open(); status.failed())
    return status;
  devices[ordinal] = device;
  return device;
}

RuntimeStatus CudaDevice::open() {
  std::string what = "cannot use CUDA device " + std::to_string(ordinal);
  cuda::Result result = driver.cuDeviceGet(&device, ordinal);
  char text[256] = "";
  if (result == cuda::Success)
    result = driver.cuDeviceGetName(text, sizeof(text), device);
  int major = 0, minor = 0, pools = 0;
  auto getAttribute = [&](cuda::DeviceAttribute attribute, int &value) {
    if (result == cuda::Success)
      result = driver.cuDeviceGetAttribute(&value, attribute, device);
  };
  getAttribute(cuda::DeviceAttribute::ComputeCapabilityMajor, major);
  getAttribute(cuda::DeviceAttribute::ComputeCapabilityMinor, minor);
  getAttribute(cuda::DeviceAttribute::MultiprocessorCount, multiprocessors);
  getAttribute(cuda::DeviceAttribute::MaxSharedBytesOptIn, maxSharedBytes);
  getAttribute(cuda::DeviceAttribute::MemoryPoolsSupported, pools);
  name = text;
  capability = 10 * major + minor;
  hasPools = pools != 0;
  if (result == cuda::Success)
    result = driver.cuDevicePrimaryCtxRetain(&context, device);
  if (result == cuda::Success)
    return {};
  context = nullptr;
  return driver.makeError(what, result);
}

CudaDevice::~CudaDevice() {
  // At the end of the process the driver may be gone: then it says so.
  if (pool)
    driver.cuMemPoolDestroy(pool);
  if (context)
    driver.cuDevicePrimaryCtxRelease(device);
}

std::string CudaDevice::describe() const {
  return "device " + std::to_string(ordinal) + " (" + name + ", sm_" +
         std::to_string(capability) + ")";
}

RuntimeStatus CudaDevice::makePool() {
  std::lock_guard<std::mutex> lock(mutex);
  if (pool)
    return {};
  if (!hasPools)
    return {RuntimeStatus::Unsupported,
            describe() +
                ": expected it to have memory pools, for scratch memory"};
  cuda::PoolProperties properties;
  properties.location = device;
  RelaxedCapture relaxed(driver);
  cuda::Pool made = nullptr;
  cuda::Result result = driver.cuMemPoolCreate(&made, &properties);
  if (result != cuda::Success)
    return driver.makeError("cannot make a memory pool on " + describe(),
                            result);
  uint64_t threshold = keptScratchBytes;
  result = driver.cuMemPoolSetAttribute(
      made, cuda::PoolAttribute::ReleaseThreshold, &threshold);
  if (result != cuda::Success) {
    driver.cuMemPoolDestroy(made);
    return driver.makeError("cannot set up a memory pool on " + describe(),
                            result);
  }
  pool = made;
  return {};
}

RuntimeOr<cuda::Address> CudaDevice::allocate(int64_t bytes,
                                              cuda::Stream stream) {
  if (RuntimeStatus status = makePool(); status.failed())
    return status;
  cuda::Address address = 0;
  cuda::Result result =
      driver.cuMemAllocFromPoolAsync(&address, bytes, pool, stream);
  if (result != cuda::Success)
    return driver.makeError("cannot allocate " + std::to_string(bytes) +
                                " bytes of scratch memory on " + describe(),
                            result);
  return address;
}

CudaDevice::Scope::Scope(const CudaDevice &device) : driver(device.driver) {
  cuda::Result result = driver.cuCtxPushCurrent(device.context);
  if (result != cuda::Success)
    status = driver.makeError("cannot use " + device.describe(), result);
}

CudaDevice::Scope::~Scope() {
  cuda::Context popped;
  if (!status.failed())
    driver.cuCtxPopCurrent(&popped);
}
