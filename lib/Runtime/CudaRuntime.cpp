//===- CudaRuntime.cpp - Running plans on devices ---------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/CudaRuntime.h"

#include "pisa/Runtime/CheckMessage.h"

using namespace pisa;

namespace {

/// An array for the length of a call, in place if it is short.
template <typename T, size_t N> class CallArray {
public:
  explicit CallArray(size_t size) {
    if (size > N)
      heap.reset(new T[size]);
  }
  T *data() { return heap ? heap.get() : inplace; }

private:
  T inplace[N];
  std::unique_ptr<T[]> heap;
};

bool isEmpty(const PlanArgument &argument, const ArgumentValue &value) {
  for (size_t i = 0; i != argument.shape.size(); ++i)
    if (value.shape[i] == 0)
      return true;
  return false;
}

bool isEmptyLaunch(const PlanLaunch &launch, const int64_t *registers) {
  for (uint32_t reg : launch.grid)
    if (registers[reg] == 0)
      return true;
  return false;
}

/// What a run will do.
struct Outlook : PlanVisitor {
  bool launches = false; ///< anything at all
  bool checks = false;
  RuntimeStatus visit(const PlanInstruction &instruction,
                      int64_t *registers) override {
    if (instruction.op == PlanOp::Check)
      checks = true;
    else
      launches |= !isEmptyLaunch(instruction.launch, registers);
    return {};
  }
};

/// For a plan with checks.
RuntimeStatus refuseCapture(const CudaDevice &device, cuda::Stream stream) {
  const CudaDriver &driver = device.getDriver();
  int status = 0;
  cuda::Result result = driver.cuStreamIsCapturing(stream, &status);
  if (result != cuda::Success)
    return driver.makeError("cannot tell whether a stream is captured on " +
                                device.describe(),
                            result);
  if (status == 0)
    return {};
  return {
      RuntimeStatus::Failed,
      "expected calls that check their lists of blocks to be outside of the "
      "capture of a graph, but the stream is being captured: a check waits "
      "for the device"};
}

/// Waits for what is on the stream and reads what `check` is about.
RuntimeStatus runCheck(const CudaDevice &device, const PlanInstruction &check,
                       const int64_t *registers, cuda::Stream stream) {
  const CudaDriver &driver = device.getDriver();
  uint64_t status = 0;
  cuda::Result result = driver.cuMemcpyDtoHAsync(
      &status, registers[check.operands[0]], sizeof(status), stream);
  if (result == cuda::Success)
    result = driver.cuStreamSynchronize(stream);
  if (result != cuda::Success)
    return driver.makeError(
        "cannot read the result of a check on " + device.describe(), result);
  uint64_t list = status >> 31, block = status & INT32_MAX;
  uint64_t kvHeads = registers[check.operands[1]];
  uint64_t queryBlocks = registers[check.operands[2]];
  if (status == UINT64_MAX || kvHeads == 0 || queryBlocks == 0)
    return {};
  return {RuntimeStatus::Failed,
          describeDuplicateBlock(list / queryBlocks / kvHeads,
                                 list / queryBlocks % kvHeads,
                                 list % queryBlocks, block)};
}

/// Launches on a stream, and waits for checks.
class Launcher : public PlanVisitor {
public:
  Launcher(const Plan &plan, const CudaDevice &device,
           const std::vector<cuda::Function> &functions, cuda::Stream stream)
      : plan(plan), device(device), functions(functions), stream(stream) {}

  RuntimeStatus visit(const PlanInstruction &instruction,
                      int64_t *registers) override {
    if (instruction.op == PlanOp::Check)
      return runCheck(device, instruction, registers, stream);
    const PlanLaunch &launch = instruction.launch;
    if (isEmptyLaunch(launch, registers))
      return {};
    const CudaDriver &driver = device.getDriver();
    // The driver copies as many bytes as the kernel declares, from the lowest.
    CallArray<void *, 64> parameters(launch.parameters.size());
    for (size_t i = 0; i != launch.parameters.size(); ++i)
      parameters.data()[i] = &registers[launch.parameters[i].reg];
    const PlanKernel &kernel = plan.kernels[launch.kernel];
    unsigned grid[3];
    for (unsigned i = 0; i != 3; ++i)
      grid[i] = registers[launch.grid[i]];
    cuda::Result result = driver.cuLaunchKernel(
        functions[launch.kernel], grid[0], grid[1], grid[2], kernel.threads, 1,
        1, kernel.sharedBytes, stream, parameters.data(),
        /*extra=*/nullptr);
    if (result != cuda::Success)
      return driver.makeError(
          "cannot launch kernel '" + kernel.name + "' on " + device.describe() +
              " with a grid of " + std::to_string(grid[0]) + " x " +
              std::to_string(grid[1]) + " x " + std::to_string(grid[2]) + ", " +
              std::to_string(kernel.threads) + " threads and " +
              std::to_string(kernel.sharedBytes) +
              " bytes of dynamic shared memory",
          result);
    return {};
  }

private:
  const Plan &plan;
  const CudaDevice &device;
  const std::vector<cuda::Function> &functions;
  cuda::Stream stream;
};

} // namespace

struct CudaExecutable::Loaded {
  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<CudaModule> module;
  std::vector<cuda::Function> functions; // of the plan's kernels
};

CudaExecutable::CudaExecutable(Plan plan, std::string image)
    : plan(std::move(plan)), image(std::move(image)) {}

CudaExecutable::~CudaExecutable() = default;

RuntimeOr<std::unique_ptr<CudaExecutable>>
CudaExecutable::create(Plan plan, std::string image) {
  if (std::string message = plan.verify(); !message.empty())
    return RuntimeStatus(RuntimeStatus::InvalidValue,
                         "plan '" + plan.name + "': " + message);
  return std::unique_ptr<CudaExecutable>(
      new CudaExecutable(std::move(plan), std::move(image)));
}

RuntimeStatus CudaExecutable::prepare(int ordinal) {
  return getLoaded(ordinal).getStatus();
}

RuntimeOr<const CudaExecutable::Loaded *>
CudaExecutable::getLoaded(int ordinal) {
  std::lock_guard<std::mutex> lock(mutex);
  if (ordinal >= 0 && size_t(ordinal) < devices.size() && devices[ordinal])
    return devices[ordinal].get();
  RuntimeOr<std::shared_ptr<CudaDevice>> device = CudaDevice::get(ordinal);
  if (!device)
    return device.getStatus();
  RuntimeOr<std::unique_ptr<CudaModule>> module =
      CudaModule::load(*device, image);
  if (!module)
    return module.getStatus();
  auto loaded = std::make_unique<Loaded>();
  for (const PlanKernel &kernel : plan.kernels) {
    RuntimeOr<cuda::Function> function = (*module)->getFunction(kernel);
    if (!function)
      return function.getStatus();
    loaded->functions.push_back(*function);
  }
  loaded->device = std::move(*device);
  loaded->module = std::move(*module);
  if (devices.size() <= size_t(ordinal))
    devices.resize(ordinal + 1);
  devices[ordinal] = std::move(loaded);
  return devices[ordinal].get();
}

/// The device that the tensors are on, all of them. Where there is none to go
/// by, it is the caller's current one, or else the first.
RuntimeOr<int>
CudaExecutable::findDevice(const ArgumentValue *arguments) const {
  std::optional<int> device;
  const std::string *first = nullptr; // the tensor that `device` came from
  for (size_t i = 0; i != plan.arguments.size(); ++i) {
    const PlanArgument &argument = plan.arguments[i];
    if (argument.kind != PlanArgument::Tensor ||
        isEmpty(argument, arguments[i]))
      continue;
    if (!arguments[i].data)
      return RuntimeStatus(RuntimeStatus::InvalidValue,
                           "'" + argument.name +
                               "': expected the address of its data, but got "
                               "null");
    RuntimeOr<CudaLocation> location = findCudaLocation(arguments[i].data);
    if (!location)
      return location.getStatus();
    if (location->kind == CudaLocation::Host)
      return RuntimeStatus(RuntimeStatus::InvalidType,
                           "'" + argument.name +
                               "': expected a tensor on a CUDA device, but "
                               "its data is in host memory");
    if (location->kind == CudaLocation::Managed)
      continue;
    if (device && *device != location->ordinal)
      return RuntimeStatus(
          RuntimeStatus::InvalidType,
          "'" + argument.name + "': expected a tensor on CUDA device " +
              std::to_string(*device) + ", as '" + *first +
              "' is, but it is on device " + std::to_string(location->ordinal));
    device = location->ordinal;
    first = &argument.name;
  }
  if (device)
    return *device;
  RuntimeOr<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.getStatus();
  cuda::Device current = 0;
  if ((*driver)->cuCtxGetDevice(&current) != cuda::Success)
    return 0; // no context is current
  return current;
}

RuntimeStatus CudaExecutable::run(const ArgumentValue *arguments, size_t count,
                                  void *streamPointer, int64_t *scratchTaken) {
  if (count != plan.arguments.size())
    return {RuntimeStatus::InvalidValue,
            "expected " + std::to_string(plan.arguments.size()) +
                " arguments, but got " + std::to_string(count)};
  if (RuntimeStatus status = checkArguments(plan, arguments); status.failed())
    return status;

  // First all sizes, with scratch memory at 0, so that whatever is wrong shows
  // before anything is done on the device.
  CallArray<int64_t, 256> registers(plan.program.size());
  CallArray<uint32_t, 256> faults(plan.program.size());
  int64_t scratchBytes = 0;
  Outlook outlook;
  if (RuntimeStatus status =
          evaluatePlan(plan, arguments, /*scratchBase=*/0, registers.data(),
                       faults.data(), scratchBytes, &outlook);
      status.failed())
    return status;
  if (scratchTaken)
    *scratchTaken = scratchBytes;
  if (!outlook.launches)
    return {};

  RuntimeOr<int> ordinal = findDevice(arguments);
  if (!ordinal)
    return ordinal.getStatus();
  RuntimeOr<const Loaded *> loaded = getLoaded(*ordinal);
  if (!loaded)
    return loaded.getStatus();
  CudaDevice &device = *(*loaded)->device;
  auto stream = static_cast<cuda::Stream>(streamPointer);
  CudaDevice::Scope scope(device);
  if (scope.getStatus().failed())
    return scope.getStatus();
  if (outlook.checks)
    if (RuntimeStatus status = refuseCapture(device, stream); status.failed())
      return status;
  Launcher launcher(plan, device, (*loaded)->functions, stream);
  auto launchAll = [&](cuda::Address scratch) {
    return evaluatePlan(plan, arguments, scratch, registers.data(),
                        faults.data(), scratchBytes, &launcher);
  };
  if (scratchBytes == 0)
    return launchAll(0);

  RuntimeOr<cuda::Address> scratch = device.allocate(scratchBytes, stream);
  if (!scratch)
    return scratch.getStatus();
  RuntimeStatus status = launchAll(*scratch);
  // On the stream, so after the kernels.
  cuda::Result result = device.getDriver().cuMemFreeAsync(*scratch, stream);
  if (!status.failed() && result != cuda::Success)
    status = device.getDriver().makeError(
        "cannot free scratch memory on " + device.describe(), result);
  return status;
}
