//===- CudaRun.h - Code and arrays on a device ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TOOLS_PISA_RUNNER_CUDARUN_H
#define PISA_TOOLS_PISA_RUNNER_CUDARUN_H

#include "Options.h"

#include "pisa/Runtime/CudaMemory.h"

namespace pisa::runner {

/// The first CUDA device, a module's functions on it, and arrays that they work
/// on. All is on the default stream.
class CudaRun {
public:
  static llvm::Expected<std::unique_ptr<CudaRun>> open();

  /// "device 0 (NVIDIA H200, sm_90)"
  std::string describe() const { return device->describe(); }

  /// Lowers `module` in place.
  llvm::Error compile(mlir::ModuleOp module, const CompileOptions &options);

  /// The argument for an array, which is copied to the device on the first call
  /// for it.
  llvm::Expected<ArgumentValue> getArgument(const npy::Array &array);
  llvm::Error download(npy::Array &array);

  /// Waits for the end of the function.
  llvm::Error call(llvm::StringRef function,
                   llvm::ArrayRef<ArgumentValue> arguments);
  llvm::Expected<double> medianMs(int64_t runs, llvm::StringRef function,
                                  llvm::ArrayRef<ArgumentValue> arguments);

  /// Of the call that needed most.
  int64_t getPeakScratch() const { return peakScratch; }

private:
  CudaRun(std::shared_ptr<CudaDevice> device, std::string chip)
      : device(std::move(device)), chip(std::move(chip)) {}
  llvm::Expected<CudaExecutable *> find(llvm::StringRef function) const;

  std::shared_ptr<CudaDevice> device;
  std::string chip;
  std::map<std::string, std::unique_ptr<CudaExecutable>, std::less<>> functions;
  std::map<const npy::Array *, CudaBuffer> buffers;
  int64_t peakScratch = 0;
};

/// What --target=auto is here, cuda or cpu; says on stderr which, and why.
/// `obstacle`: what keeps the problem from CUDA even where there is a device,
/// "" if nothing does.
std::string chooseTarget(llvm::StringRef obstacle);

} // namespace pisa::runner

#endif // PISA_TOOLS_PISA_RUNNER_CUDARUN_H
