//===- CudaDriver.h - CUDA, found when the program runs ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_CUDADRIVER_H
#define PISA_RUNTIME_CUDADRIVER_H

#include "pisa/Runtime/RuntimeStatus.h"

#include <cstddef>
#include <cstdint>

namespace pisa {

/// The part of the driver's interface that we use, declared in our own words:
/// we build and start where there is no CUDA.
namespace cuda {

using Device = int;
using Address = unsigned long long;
using Context = struct ContextObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Pool = struct PoolObject *;
using Event = struct EventObject *;

enum Result : int {
  Success = 0,
  OutOfMemory = 2,
  NoDevice = 100,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  NotFound = 500,
  NotSupported = 801,
};

enum class DeviceAttribute : int {
  MultiprocessorCount = 16,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedBytesOptIn = 97,
  MemoryPoolsSupported = 115,
};

enum class FunctionAttribute : int {
  MaxThreads = 0,
  StaticSharedBytes = 1,
  MaxDynamicSharedBytes = 8,
  SharedMemoryCarveout = 9, // in percent
};

enum class PointerAttribute : int {
  MemoryType = 2, // of type unsigned
  IsManaged = 8,  // of type unsigned
  DeviceOrdinal = 9,
};
constexpr unsigned memoryTypeDevice = 2;

enum class JitOption : int {
  ErrorLogBuffer = 5,
  ErrorLogBufferBytes = 6,
};

enum class PoolAttribute : int { ReleaseThreshold = 4 }; // of type uint64_t

enum class CaptureMode : int { Relaxed = 2 };

struct PoolProperties {
  int allocationType = 1; // device memory
  int handleTypes = 0;    // not shared with other processes
  int locationType = 1;   // a device
  Device location = 0;
  void *securityAttributes = nullptr;
  size_t maxBytes = 0; // no limit
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88);

} // namespace cuda

// The functions of the driver: name and parameters.
#define PISA_CUDA_FUNCTIONS(FUNCTION)                                          \
  FUNCTION(cuInit, (unsigned flags))                                           \
  FUNCTION(cuDriverGetVersion, (int *version))                                 \
  FUNCTION(cuGetErrorName, (cuda::Result result, const char **name))           \
  FUNCTION(cuGetErrorString, (cuda::Result result, const char **text))         \
  FUNCTION(cuDeviceGetCount, (int *count))                                     \
  FUNCTION(cuDeviceGet, (cuda::Device * device, int ordinal))                  \
  FUNCTION(cuDeviceGetName, (char *name, int bytes, cuda::Device device))      \
  FUNCTION(cuDeviceGetAttribute,                                               \
           (int *value, cuda::DeviceAttribute attribute, cuda::Device device)) \
  FUNCTION(cuDevicePrimaryCtxRetain,                                           \
           (cuda::Context * context, cuda::Device device))                     \
  FUNCTION(cuDevicePrimaryCtxRelease, (cuda::Device device))                   \
  FUNCTION(cuCtxPushCurrent, (cuda::Context context))                          \
  FUNCTION(cuCtxPopCurrent, (cuda::Context * context))                         \
  FUNCTION(cuCtxGetDevice, (cuda::Device * device))                            \
  FUNCTION(cuPointerGetAttributes,                                             \
           (unsigned count, cuda::PointerAttribute *attributes, void **values, \
            cuda::Address address))                                            \
  FUNCTION(cuThreadExchangeStreamCaptureMode, (cuda::CaptureMode * mode))      \
  FUNCTION(cuModuleLoadDataEx,                                                 \
           (cuda::Module * module, const void *image, unsigned count,          \
            cuda::JitOption *options, void **values))                          \
  FUNCTION(cuModuleUnload, (cuda::Module module))                              \
  FUNCTION(cuModuleGetFunction,                                                \
           (cuda::Function * function, cuda::Module module, const char *name)) \
  FUNCTION(cuFuncGetAttribute, (int *value, cuda::FunctionAttribute attribute, \
                                cuda::Function function))                      \
  FUNCTION(cuFuncSetAttribute, (cuda::Function function,                       \
                                cuda::FunctionAttribute attribute, int value)) \
  FUNCTION(cuMemPoolCreate,                                                    \
           (cuda::Pool * pool, const cuda::PoolProperties *properties))        \
  FUNCTION(cuMemPoolDestroy, (cuda::Pool pool))                                \
  FUNCTION(cuMemPoolSetAttribute,                                              \
           (cuda::Pool pool, cuda::PoolAttribute attribute, void *value))      \
  FUNCTION(cuMemAllocFromPoolAsync, (cuda::Address * address, size_t bytes,    \
                                     cuda::Pool pool, cuda::Stream stream))    \
  FUNCTION(cuMemFreeAsync, (cuda::Address address, cuda::Stream stream))       \
  FUNCTION(cuMemAlloc, (cuda::Address * address, size_t bytes))                \
  FUNCTION(cuMemFree, (cuda::Address address))                                 \
  FUNCTION(cuMemcpyHtoD, (cuda::Address to, const void *from, size_t bytes))   \
  FUNCTION(cuMemcpyDtoH, (void *to, cuda::Address from, size_t bytes))         \
  FUNCTION(cuMemcpyDtoHAsync,                                                  \
           (void *to, cuda::Address from, size_t bytes, cuda::Stream stream))  \
  FUNCTION(cuStreamIsCapturing, (cuda::Stream stream, int *status))            \
  FUNCTION(cuStreamSynchronize, (cuda::Stream stream))                         \
  FUNCTION(cuEventCreate, (cuda::Event * event, unsigned flags))               \
  FUNCTION(cuEventDestroy, (cuda::Event event))                                \
  FUNCTION(cuEventRecord, (cuda::Event event, cuda::Stream stream))            \
  FUNCTION(cuEventSynchronize, (cuda::Event event))                            \
  FUNCTION(cuEventElapsedTime,                                                 \
           (float *milliseconds, cuda::Event begin, cuda::Event end))          \
  FUNCTION(cuLaunchKernel,                                                     \
           (cuda::Function function, unsigned gridX, unsigned gridY,           \
            unsigned gridZ, unsigned threadsX, unsigned threadsY,              \
            unsigned threadsZ, unsigned sharedBytes, cuda::Stream stream,      \
            void **parameters, void **extra))

/// The functions of the installed driver, one member each.
class CudaDriver {
public:
  /// Loads and initializes the driver on the first call; later calls give the
  /// same answer. The environment variable PISA_CUDA_DRIVER names the library
  /// to load; it is libcuda.so.1 otherwise.
  static RuntimeOr<const CudaDriver *> get();

#define PISA_CUDA_MEMBER(name, parameters)                                     \
  cuda::Result(*name) parameters = nullptr;
  PISA_CUDA_FUNCTIONS(PISA_CUDA_MEMBER)
#undef PISA_CUDA_MEMBER

  /// As CUDA counts: 13020 is 13.2.
  int getVersion() const { return version; }
  /// As people do.
  std::string getVersionText() const;

  /// "CUDA_ERROR_X (text)"
  std::string describe(cuda::Result result) const;
  /// "`what`: CUDA_ERROR_X (text)", with the kind that fits the result.
  RuntimeStatus makeError(const std::string &what, cuda::Result result) const;

private:
  CudaDriver() = default;
  static RuntimeOr<const CudaDriver *> load();
  /// Fills in the members.
  RuntimeStatus resolve(void *library, const std::string &name);

  int version = 0;
};

} // namespace pisa

#endif // PISA_RUNTIME_CUDADRIVER_H
