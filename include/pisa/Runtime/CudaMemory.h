//===- CudaMemory.h - Arrays and times on devices ---------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_CUDAMEMORY_H
#define PISA_RUNTIME_CUDAMEMORY_H

#include "pisa/Runtime/CudaRuntime.h"

#include <functional>

namespace pisa {

/// Memory on a device for whoever brings none, as tools do; freed with its
/// owner. Of 0 bytes it has the address 0.
class CudaBuffer {
public:
  static RuntimeOr<CudaBuffer> create(std::shared_ptr<CudaDevice> device,
                                      size_t bytes);
  CudaBuffer(CudaBuffer &&other) { *this = std::move(other); }
  CudaBuffer &operator=(CudaBuffer &&other);
  ~CudaBuffer();

  void *getData() const { return reinterpret_cast<void *>(address); }
  size_t getSize() const { return bytes; }

  // All of it. Both wait, also for what is on the default stream.
  RuntimeStatus upload(const void *data) const;
  RuntimeStatus download(void *data) const;

private:
  CudaBuffer(std::shared_ptr<CudaDevice> device, size_t bytes)
      : device(std::move(device)), bytes(bytes) {}

  std::shared_ptr<CudaDevice> device;
  cuda::Address address = 0;
  size_t bytes = 0;
};

/// Waits for the default stream of a device; `what` is in the message when the
/// work on it has failed.
RuntimeStatus waitForCuda(const CudaDevice &device, const std::string &what);

/// Milliseconds on the device that the work takes that `body` puts on the
/// default stream, by a pair of events.
RuntimeOr<float> timeOnCuda(const CudaDevice &device,
                            const std::function<RuntimeStatus()> &body);

} // namespace pisa

#endif // PISA_RUNTIME_CUDAMEMORY_H
