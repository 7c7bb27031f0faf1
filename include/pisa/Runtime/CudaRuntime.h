//===- CudaRuntime.h - Running compiled GPU functions -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_CUDARUNTIME_H
#define PISA_RUNTIME_CUDARUNTIME_H

#include "pisa/Runtime/CudaDriver.h"
#include "pisa/Runtime/Plan.h"

#include <memory>
#include <mutex>
#include <optional>

namespace pisa {

RuntimeOr<int> getCudaDeviceCount();

/// Which device memory at an address is on.
struct CudaLocation {
  enum Kind { Host, Device, Managed };
  Kind kind = Host;
  int ordinal = 0; // of Device
};
RuntimeOr<CudaLocation> findCudaLocation(const void *address);

/// A device with its primary context, the one that frameworks use. It lives as
/// long as someone holds it.
class CudaDevice {
public:
  static RuntimeOr<std::shared_ptr<CudaDevice>> get(int ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  const CudaDriver &getDriver() const { return driver; }
  int getOrdinal() const { return ordinal; }
  const std::string &getName() const { return name; }
  /// 90 is 9.0.
  int getComputeCapability() const { return capability; }
  int getDriverVersion() const { return driver.getVersion(); }
  int getMultiprocessorCount() const { return multiprocessors; }
  /// The most shared memory that a block can have.
  int getMaxSharedBytes() const { return maxSharedBytes; }
  /// "device 0 (NVIDIA H200, sm_90)"
  std::string describe() const;

  /// Allocates on a stream; free it on the stream by cuMemFreeAsync. The
  /// device's context must be current.
  RuntimeOr<cuda::Address> allocate(int64_t bytes, cuda::Stream stream);

  /// Makes the device's context current while it lives.
  class Scope {
  public:
    explicit Scope(const CudaDevice &device);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    const RuntimeStatus &getStatus() const { return status; }

  private:
    const CudaDriver &driver;
    RuntimeStatus status;
  };

  /// While it lives, the thread may do what the driver refuses during the
  /// capture of a stream because a graph cannot hold it: load code, make pools.
  class RelaxedCapture {
  public:
    explicit RelaxedCapture(const CudaDriver &driver) : driver(driver) {
      driver.cuThreadExchangeStreamCaptureMode(&mode);
    }
    ~RelaxedCapture() { driver.cuThreadExchangeStreamCaptureMode(&mode); }
    RelaxedCapture(const RelaxedCapture &) = delete;
    RelaxedCapture &operator=(const RelaxedCapture &) = delete;

  private:
    const CudaDriver &driver;
    // Then the former mode.
    cuda::CaptureMode mode = cuda::CaptureMode::Relaxed;
  };

private:
  CudaDevice(const CudaDriver &driver, int ordinal)
      : driver(driver), ordinal(ordinal) {}
  RuntimeStatus open();
  RuntimeStatus makePool();

  const CudaDriver &driver;
  int ordinal;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  std::string name;
  int capability = 0, multiprocessors = 0, maxSharedBytes = 0;
  bool hasPools = false;
  std::mutex mutex; // guards `pool` while it is made
  cuda::Pool pool = nullptr;
};

/// Code loaded on one device.
class CudaModule {
public:
  /// `image` is PTX, which the driver compiles, or a cubin.
  static RuntimeOr<std::unique_ptr<CudaModule>>
  load(std::shared_ptr<CudaDevice> device, const std::string &image);
  ~CudaModule();
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  /// The kernel, ready to be launched with so many threads and bytes of dynamic
  /// shared memory.
  RuntimeOr<cuda::Function> getFunction(const PlanKernel &kernel) const;

private:
  explicit CudaModule(std::shared_ptr<CudaDevice> device)
      : device(std::move(device)) {}

  std::shared_ptr<CudaDevice> device;
  cuda::Module module = nullptr;
};

/// Where ptxas is: the environment variable PISA_PTXAS names it, or it is on
/// the PATH.
std::optional<std::string> findPtxas();

struct AssembledPtx {
  std::string cubin;
  std::string log; ///< what ptxas printed: its warnings
};
/// Assembles PTX with ptxas for `arch` ("sm_90a").
RuntimeOr<AssembledPtx>
assemblePtx(const std::string &ptx, const std::string &arch,
            const std::vector<std::string> &options = {});

/// A compiled function: a plan and the code that it launches. It may be run by
/// several threads at once, on several devices.
class CudaExecutable {
public:
  /// Verifies the plan. Needs no driver. `image` is PTX or a cubin.
  static RuntimeOr<std::unique_ptr<CudaExecutable>> create(Plan plan,
                                                           std::string image);
  ~CudaExecutable();
  CudaExecutable(const CudaExecutable &) = delete;
  CudaExecutable &operator=(const CudaExecutable &) = delete;

  /// Loads the code on a device; `run` does it on the first call otherwise.
  RuntimeStatus prepare(int ordinal);

  /// Puts the kernels on `stream` (a CUstream of the device that the tensors
  /// are on; null is the default stream) and does not wait for them. Nothing
  /// is launched if the arguments are wrong. May be captured into a graph.
  /// Only a plan with checks waits, for those, and cannot be captured.
  /// `scratchBytes`, if given, receives the bytes of scratch memory taken.
  RuntimeStatus run(const ArgumentValue *arguments, size_t count, void *stream,
                    int64_t *scratchBytes = nullptr);

private:
  struct Loaded;
  CudaExecutable(Plan plan, std::string image);
  RuntimeOr<int> findDevice(const ArgumentValue *arguments) const;
  RuntimeOr<const Loaded *> getLoaded(int ordinal);

  Plan plan;
  std::string image;
  std::mutex mutex; // guards `devices`
  std::vector<std::unique_ptr<Loaded>> devices;
};

} // namespace pisa

#endif // PISA_RUNTIME_CUDARUNTIME_H
