//===- CudaRun.cpp - Code and arrays on a device ----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRun.h"

#include "pisa/Compiler/Cuda.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

using namespace pisa;
using namespace pisa::runner;

llvm::Expected<std::unique_ptr<CudaRun>> CudaRun::open() {
  RuntimeOr<std::shared_ptr<CudaDevice>> device = CudaDevice::get(0);
  if (!device)
    return toError(device.getStatus());
  auto chip = getChip((*device)->getComputeCapability());
  if (!chip)
    return chip.takeError();
  return std::unique_ptr<CudaRun>(
      new CudaRun(std::move(*device), std::move(*chip)));
}

std::string runner::chooseTarget(llvm::StringRef obstacle) {
  auto run = CudaRun::open();
  std::string target = run && obstacle.empty() ? "cuda" : "cpu";
  std::string reason = !run               ? llvm::toString(run.takeError())
                       : obstacle.empty() ? (*run)->describe()
                                          : obstacle.str();
  llvm::errs() << "[pisa-runner] --target=auto: " << target << " (" << reason
               << ")\n";
  return target;
}

llvm::Error CudaRun::compile(mlir::ModuleOp module,
                             const CompileOptions &options) {
  CudaCompileOptions cuda;
  cuda.chip = chip;
  cuda.checkInputs = options.checkInputs;
  cuda.afterLevel = options.afterLevel;
  auto code = compileForCuda(module, cuda);
  if (!code)
    return code.takeError();
  std::string warning;
  std::string image = makeCudaImage(*code, warning);
  if (!warning.empty())
    llvm::WithColor::warning(llvm::errs(), "pisa-runner") << warning << "\n";
  for (const Plan &plan : code->plans) {
    RuntimeOr<std::unique_ptr<CudaExecutable>> executable =
        CudaExecutable::create(plan, image);
    if (!executable)
      return toError(executable.getStatus());
    // No tensor may be there to tell the device by.
    if (auto error = toError((*executable)->prepare(device->getOrdinal())))
      return error;
    functions[plan.name] = std::move(*executable);
  }
  return llvm::Error::success();
}

llvm::Expected<ArgumentValue> CudaRun::getArgument(const npy::Array &array) {
  auto it = buffers.find(&array);
  if (it == buffers.end()) {
    RuntimeOr<CudaBuffer> buffer =
        CudaBuffer::create(device, array.data.size());
    if (!buffer)
      return toError(buffer.getStatus());
    if (auto error = toError(buffer->upload(array.data.data())))
      return error;
    it = buffers.emplace(&array, std::move(*buffer)).first;
  }
  return ArgumentValue::tensor(it->second.getData(), array.shape.data(),
                               /*strides=*/nullptr);
}

llvm::Error CudaRun::download(npy::Array &array) {
  auto it = buffers.find(&array);
  if (it == buffers.end())
    return llvm::Error::success();
  return toError(it->second.download(array.data.data()));
}

llvm::Expected<CudaExecutable *> CudaRun::find(llvm::StringRef function) const {
  auto it = functions.find(function);
  if (it != functions.end())
    return it->second.get();
  return llvm::createStringError("expected @" + function +
                                 " to be a public function");
}

llvm::Error CudaRun::call(llvm::StringRef function,
                          llvm::ArrayRef<ArgumentValue> arguments) {
  auto executable = find(function);
  if (!executable)
    return executable.takeError();
  int64_t scratchBytes = 0;
  if (auto error = toError((*executable)
                               ->run(arguments.data(), arguments.size(),
                                     /*stream=*/nullptr, &scratchBytes)))
    return error;
  peakScratch = std::max(peakScratch, scratchBytes);
  return toError(waitForCuda(*device, function.str()));
}

llvm::Expected<double>
CudaRun::medianMs(int64_t runs, llvm::StringRef function,
                  llvm::ArrayRef<ArgumentValue> arguments) {
  auto executable = find(function);
  if (!executable)
    return executable.takeError();
  return medianOf(runs, [&]() -> llvm::Expected<double> {
    RuntimeOr<float> taken = timeOnCuda(*device, [&] {
      return (*executable)
          ->run(arguments.data(), arguments.size(), /*stream=*/nullptr);
    });
    if (!taken)
      return toError(taken.getStatus());
    return *taken;
  });
}
