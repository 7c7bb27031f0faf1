//===- FakeCuda.cpp - A CUDA driver without a GPU ---------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace pisa;
using namespace pisa::test;

namespace pisa::cuda {
struct ContextObject {
  int device;
};
struct FunctionObject {
  std::string name;
  std::vector<unsigned> parameterBytes;
};
struct ModuleObject {
  std::string image;
  int device;
  std::map<std::string, FunctionObject> functions;
};
struct PoolObject {
  int device;
};
struct EventObject {
  bool isRecorded;
};
} // namespace pisa::cuda

/// What programs that do not link with the fake say to it.
FakeCuda::FakeCuda() {
  if (const char *text = std::getenv(PISA_FAKE_CUDA_DEVICES))
    numDevices = std::atoi(text);
  if (const char *text = std::getenv(PISA_FAKE_CUDA_CAPABILITY))
    capability = std::atoi(text);
  if (const char *text = std::getenv(PISA_FAKE_CUDA_CHECK))
    checkStatus = std::strtoull(text, nullptr, 10);
  if (const char *text = std::getenv(PISA_FAKE_CUDA_FAILS)) {
    std::string failure = text;
    size_t equals = failure.find('=');
    failures[failure.substr(0, equals)] =
        std::atoi(failure.c_str() + equals + 1);
  }
}

FakeCuda::~FakeCuda() {
  if (!std::getenv(PISA_FAKE_CUDA_REPORT))
    return;
  int retained = 0;
  for (int count : numRetained)
    retained += count;
  std::fprintf(stderr,
               "fake driver: %zu launches; left: %zu allocations, %d events, "
               "%d modules, %d pools, %d contexts\n",
               launches.size(), memory.size(), numEvents, numModules, numPools,
               retained);
}

static FakeCuda &fake() {
  static FakeCuda state;
  return state;
}

extern "C" FakeCuda *getFakeCuda() { return &fake(); }

namespace {

cuda::ContextObject contexts[FakeCuda::maxDevices] = {{0}, {1}, {2}, {3}};
thread_local std::vector<cuda::Context> current;
thread_local cuda::CaptureMode captureMode{};

constexpr auto invalidValue = cuda::Result(1);
constexpr auto captureUnsupported = cuda::Result(900);
constexpr auto invalidDevice = cuda::Result(101);

/// Begins each function: takes the lock, notes the call.
class Call {
public:
  explicit Call(const char *name, bool needsContext = false)
      : lock(fake().mutex) {
    fake().calls.push_back(name);
    if (auto it = fake().failures.find(name); it != fake().failures.end())
      result = cuda::Result(it->second);
    else if (needsContext && current.empty())
      result = cuda::InvalidContext;
  }
  bool failed() const { return result != cuda::Success; }
  cuda::Result result = cuda::Success;

private:
  std::lock_guard<std::recursive_mutex> lock;
};

bool breaksCapture() {
  return fake().isCapturing && captureMode != cuda::CaptureMode::Relaxed;
}

#define BEGIN(...)                                                             \
  Call call(__VA_ARGS__);                                                      \
  if (call.failed())                                                           \
  return call.result

cuda::Result cuInit(unsigned) {
  BEGIN("cuInit");
  return cuda::Success;
}

cuda::Result cuDriverGetVersion(int *version) {
  BEGIN("cuDriverGetVersion");
  *version = 13000;
  return cuda::Success;
}

cuda::Result cuGetErrorName(cuda::Result result, const char **name) {
  switch (int(result)) {
  case 2:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return cuda::Success;
  case 100:
    *name = "CUDA_ERROR_NO_DEVICE";
    return cuda::Success;
  case 218:
    *name = "CUDA_ERROR_INVALID_PTX";
    return cuda::Success;
  case 719:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    return cuda::Success;
  }
  *name = nullptr;
  return invalidValue;
}

cuda::Result cuGetErrorString(cuda::Result result, const char **text) {
  *text = nullptr;
  if (result != cuda::OutOfMemory)
    return invalidValue;
  *text = "out of memory";
  return cuda::Success;
}

cuda::Result cuDeviceGetCount(int *count) {
  BEGIN("cuDeviceGetCount");
  *count = fake().numDevices;
  return cuda::Success;
}

cuda::Result cuDeviceGet(cuda::Device *device, int ordinal) {
  BEGIN("cuDeviceGet");
  if (ordinal < 0 || ordinal >= fake().numDevices)
    return invalidDevice;
  *device = ordinal;
  return cuda::Success;
}

cuda::Result cuDeviceGetName(char *name, int bytes, cuda::Device device) {
  BEGIN("cuDeviceGetName");
  std::strncpy(name, "Fake GPU", bytes);
  return cuda::Success;
}

cuda::Result cuDeviceGetAttribute(int *value, cuda::DeviceAttribute attribute,
                                  cuda::Device device) {
  BEGIN("cuDeviceGetAttribute");
  switch (attribute) {
  case cuda::DeviceAttribute::MultiprocessorCount:
    *value = fake().numMultiprocessors;
    return cuda::Success;
  case cuda::DeviceAttribute::ComputeCapabilityMajor:
    *value = fake().capability / 10;
    return cuda::Success;
  case cuda::DeviceAttribute::ComputeCapabilityMinor:
    *value = fake().capability % 10 + device;
    return cuda::Success;
  case cuda::DeviceAttribute::MaxSharedBytesOptIn:
    *value = fake().maxSharedBytes;
    return cuda::Success;
  case cuda::DeviceAttribute::MemoryPoolsSupported:
    *value = fake().hasPools;
    return cuda::Success;
  }
  return invalidValue;
}

cuda::Result cuDevicePrimaryCtxRetain(cuda::Context *context,
                                      cuda::Device device) {
  BEGIN("cuDevicePrimaryCtxRetain");
  ++fake().numRetained[device];
  *context = &contexts[device];
  return cuda::Success;
}

cuda::Result cuDevicePrimaryCtxRelease(cuda::Device device) {
  BEGIN("cuDevicePrimaryCtxRelease");
  --fake().numRetained[device];
  return cuda::Success;
}

cuda::Result cuCtxPushCurrent(cuda::Context context) {
  BEGIN("cuCtxPushCurrent");
  if (!fake().numRetained[context->device])
    return cuda::InvalidContext;
  current.push_back(context);
  return cuda::Success;
}

cuda::Result cuCtxPopCurrent(cuda::Context *context) {
  BEGIN("cuCtxPopCurrent", /*needsContext=*/true);
  *context = current.back();
  current.pop_back();
  return cuda::Success;
}

cuda::Result cuCtxGetDevice(cuda::Device *device) {
  BEGIN("cuCtxGetDevice", /*needsContext=*/true);
  *device = current.back()->device;
  return cuda::Success;
}

cuda::Result cuPointerGetAttributes(unsigned count,
                                    cuda::PointerAttribute *attributes,
                                    void **values, cuda::Address address) {
  BEGIN("cuPointerGetAttributes");
  const FakeMemory *found = nullptr;
  for (const auto &[begin, memory] : fake().memory)
    if (address >= begin && address < begin + memory.bytes)
      found = &memory;
  for (unsigned i = 0; i != count; ++i) {
    auto *value = static_cast<unsigned *>(values[i]);
    switch (attributes[i]) {
    case cuda::PointerAttribute::MemoryType:
      *value = found ? cuda::memoryTypeDevice : 0;
      break;
    case cuda::PointerAttribute::IsManaged:
      *value = found && found->kind == FakeMemory::Managed;
      break;
    case cuda::PointerAttribute::DeviceOrdinal:
      *value = found ? found->device : -2;
      break;
    }
  }
  return cuda::Success;
}

cuda::Result cuThreadExchangeStreamCaptureMode(cuda::CaptureMode *mode) {
  BEGIN("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, captureMode);
  return cuda::Success;
}

/// Finds entries like ".visible .entry f(.param .u64 a, .param .u32 b)".
void findFunctions(cuda::ModuleObject &module) {
  std::string text = module.image;
  for (char &c : text)
    if (c == '(' || c == ')' || c == ',')
      c = c == ')' ? '}' : ' ';
  std::istringstream words(text);
  cuda::FunctionObject *function = nullptr;
  for (std::string word; words >> word;) {
    if (word == ".entry") {
      words >> word;
      function = &module.functions[word];
      function->name = word;
    } else if (function &&
               (word == ".u64" || word == ".u32" || word == ".f32")) {
      function->parameterBytes.push_back(word == ".u64" ? 8 : 4);
    }
    if (word.find('}') != std::string::npos)
      function = nullptr;
  }
}

cuda::Result cuModuleLoadDataEx(cuda::Module *module, const void *image,
                                unsigned count, cuda::JitOption *options,
                                void **values) {
  Call call("cuModuleLoadDataEx", /*needsContext=*/true);
  if (call.failed()) {
    char *log = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i != count; ++i)
      if (options[i] == cuda::JitOption::ErrorLogBuffer)
        log = static_cast<char *>(values[i]);
      else
        bytes = reinterpret_cast<size_t>(values[i]);
    if (log)
      std::strncpy(log, fake().jitLog.c_str(), bytes);
    *module = reinterpret_cast<cuda::Module>(0xbad);
    return call.result;
  }
  if (breaksCapture())
    return captureUnsupported;
  *module = new cuda::ModuleObject{
      static_cast<const char *>(image), current.back()->device, {}};
  findFunctions(**module);
  ++fake().numModules;
  return cuda::Success;
}

cuda::Result cuModuleUnload(cuda::Module module) {
  BEGIN("cuModuleUnload", /*needsContext=*/true);
  if (module->device != current.back()->device)
    return cuda::InvalidContext;
  delete module;
  --fake().numModules;
  return cuda::Success;
}

cuda::Result cuModuleGetFunction(cuda::Function *function, cuda::Module module,
                                 const char *name) {
  BEGIN("cuModuleGetFunction", /*needsContext=*/true);
  auto it = module->functions.find(name);
  if (it == module->functions.end())
    return cuda::NotFound;
  *function = &it->second;
  return cuda::Success;
}

cuda::Result cuFuncGetAttribute(int *value, cuda::FunctionAttribute attribute,
                                cuda::Function) {
  BEGIN("cuFuncGetAttribute", /*needsContext=*/true);
  *value = attribute == cuda::FunctionAttribute::MaxThreads
               ? fake().maxThreads
               : fake().staticSharedBytes;
  return cuda::Success;
}

cuda::Result cuFuncSetAttribute(cuda::Function function,
                                cuda::FunctionAttribute attribute, int value) {
  BEGIN("cuFuncSetAttribute", /*needsContext=*/true);
  fake().attributes.push_back(function->name + " " +
                              std::to_string(int(attribute)) + " " +
                              std::to_string(value));
  return cuda::Success;
}

cuda::Result cuMemPoolCreate(cuda::Pool *pool,
                             const cuda::PoolProperties *properties) {
  BEGIN("cuMemPoolCreate");
  if (breaksCapture())
    return captureUnsupported;
  *pool = new cuda::PoolObject{properties->location};
  ++fake().numPools;
  return cuda::Success;
}

cuda::Result cuMemPoolDestroy(cuda::Pool pool) {
  BEGIN("cuMemPoolDestroy");
  delete pool;
  --fake().numPools;
  return cuda::Success;
}

cuda::Result cuMemPoolSetAttribute(cuda::Pool, cuda::PoolAttribute, void *) {
  BEGIN("cuMemPoolSetAttribute");
  return cuda::Success;
}

cuda::Result cuMemAllocFromPoolAsync(cuda::Address *address, size_t bytes,
                                     cuda::Pool pool, cuda::Stream stream) {
  BEGIN("cuMemAllocFromPoolAsync", /*needsContext=*/true);
  if (bytes == 0 || pool->device != current.back()->device)
    return invalidValue;
  static cuda::Address next = 0x7f0000000000;
  *address = next;
  next += (bytes + 511) / 512 * 512 + 512;
  fake().memory[*address] = {FakeMemory::Scratch, pool->device, bytes};
  return cuda::Success;
}

cuda::Result cuMemFreeAsync(cuda::Address address, cuda::Stream stream) {
  BEGIN("cuMemFreeAsync", /*needsContext=*/true);
  return fake().memory.erase(address) ? cuda::Success : invalidValue;
}

// Of the host, so that copies are copies.
cuda::Result cuMemAlloc(cuda::Address *address, size_t bytes) {
  BEGIN("cuMemAlloc", /*needsContext=*/true);
  if (bytes == 0)
    return invalidValue;
  *address = reinterpret_cast<cuda::Address>(std::malloc(bytes));
  fake().memory[*address] = {FakeMemory::Tensor, current.back()->device, bytes};
  return cuda::Success;
}

cuda::Result cuMemFree(cuda::Address address) {
  BEGIN("cuMemFree", /*needsContext=*/true);
  if (!fake().memory.erase(address))
    return invalidValue;
  std::free(reinterpret_cast<void *>(address));
  return cuda::Success;
}

cuda::Result cuMemcpyHtoD(cuda::Address to, const void *from, size_t bytes) {
  BEGIN("cuMemcpyHtoD", /*needsContext=*/true);
  auto it = fake().memory.find(to);
  if (it == fake().memory.end() || it->second.bytes < bytes)
    return invalidValue;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return cuda::Success;
}

cuda::Result cuMemcpyDtoH(void *to, cuda::Address from, size_t bytes) {
  BEGIN("cuMemcpyDtoH", /*needsContext=*/true);
  auto it = fake().memory.find(from);
  if (it == fake().memory.end() || it->second.bytes < bytes)
    return invalidValue;
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return cuda::Success;
}

cuda::Result cuMemcpyDtoHAsync(void *to, cuda::Address from, size_t bytes,
                               cuda::Stream) {
  BEGIN("cuMemcpyDtoHAsync", /*needsContext=*/true);
  auto it = fake().memory.upper_bound(from);
  if (it == fake().memory.begin())
    return invalidValue;
  --it;
  if (from + bytes > it->first + it->second.bytes)
    return invalidValue;
  // Scratch memory has no content: tests say what it is.
  if (it->second.kind == FakeMemory::Scratch)
    std::memcpy(to, &fake().checkStatus, std::min(bytes, sizeof(uint64_t)));
  else
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return cuda::Success;
}

cuda::Result cuStreamIsCapturing(cuda::Stream, int *status) {
  BEGIN("cuStreamIsCapturing", /*needsContext=*/true);
  *status = fake().isCapturing;
  return cuda::Success;
}

cuda::Result cuStreamSynchronize(cuda::Stream) {
  BEGIN("cuStreamSynchronize", /*needsContext=*/true);
  return fake().isCapturing ? captureUnsupported : cuda::Success;
}

cuda::Result cuEventCreate(cuda::Event *event, unsigned) {
  BEGIN("cuEventCreate", /*needsContext=*/true);
  *event = new cuda::EventObject{false};
  ++fake().numEvents;
  return cuda::Success;
}

cuda::Result cuEventDestroy(cuda::Event event) {
  BEGIN("cuEventDestroy", /*needsContext=*/true);
  delete event;
  --fake().numEvents;
  return cuda::Success;
}

cuda::Result cuEventRecord(cuda::Event event, cuda::Stream) {
  BEGIN("cuEventRecord", /*needsContext=*/true);
  event->isRecorded = true;
  return cuda::Success;
}

cuda::Result cuEventSynchronize(cuda::Event event) {
  BEGIN("cuEventSynchronize", /*needsContext=*/true);
  return cuda::Success;
}

cuda::Result cuEventElapsedTime(float *milliseconds, cuda::Event begin,
                                cuda::Event end) {
  BEGIN("cuEventElapsedTime", /*needsContext=*/true);
  *milliseconds = 1.25;
  return begin->isRecorded && end->isRecorded ? cuda::Success : invalidValue;
}

cuda::Result cuLaunchKernel(cuda::Function function, unsigned gridX,
                            unsigned gridY, unsigned gridZ, unsigned threadsX,
                            unsigned threadsY, unsigned threadsZ,
                            unsigned sharedBytes, cuda::Stream stream,
                            void **parameters, void **) {
  BEGIN("cuLaunchKernel", /*needsContext=*/true);
  if (gridX * gridY * gridZ * threadsX == 0 || threadsY != 1 || threadsZ != 1)
    return invalidValue;
  FakeLaunch launch{
      function->name, {gridX, gridY, gridZ},  threadsX, sharedBytes,
      stream,         current.back()->device, {}};
  for (unsigned bytes : function->parameterBytes)
    launch.parameters.emplace_back(static_cast<char *>(*parameters++), bytes);
  fake().launches.push_back(std::move(launch));
  return cuda::Success;
}

} // namespace

extern "C" cuda::Result cuGetProcAddress_v2(const char *name, void **function,
                                            int, uint64_t, int *) {
  *function = nullptr;
  const char *lacks = std::getenv(PISA_FAKE_CUDA_LACKS);
  if (lacks && std::strcmp(lacks, name) == 0)
    return cuda::NotFound;
#define FIND(fakeFunction, parameters)                                         \
  if (std::strcmp(name, #fakeFunction) == 0)                                   \
    *function = reinterpret_cast<void *>(&fakeFunction);
  PISA_CUDA_FUNCTIONS(FIND)
#undef FIND
  return *function ? cuda::Success : cuda::NotFound;
}
