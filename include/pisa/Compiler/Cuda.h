//===- Cuda.h - From a module to code for NVIDIA GPUs -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_COMPILER_CUDA_H
#define PISA_COMPILER_CUDA_H

#include "pisa/Compiler/Status.h"
#include "pisa/Runtime/Plan.h"
#include "pisa/Target/CpuJit.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pisa {

class ObjectCache;

/// How a module is compiled for a GPU.
struct CudaCompileOptions {
  std::string chip = "sm_80"; ///< as LLVM names it
  bool checkInputs = false;   ///< report lists with an entry twice at run time
  int64_t partialBytes = 0;   ///< see NvptxPipelineOptions
  /// Called with the name of each level (problem, phase, tile, gpu-kernel,
  /// plan) that the module has come to.
  std::function<void(llvm::StringRef, mlir::ModuleOp)> afterLevel;
};

/// What one module becomes: code, and the launches of each public function.
struct CudaCode {
  std::string chip;
  std::vector<Plan> plans;
  std::string ptx;

  const Plan *find(llvm::StringRef function) const;
  /// Bytes that `deserialize` understands, of the same build.
  std::string serialize() const;
  static llvm::Expected<CudaCode> deserialize(llvm::StringRef bytes);
};

/// Lowers `module` in place. Needs neither a GPU nor a driver. Failures of
/// passes are diagnostics on the module's context and a short error here.
llvm::Expected<CudaCode> compileForCuda(mlir::ModuleOp module,
                                        const CudaCompileOptions &options);

/// The last step of it: the code of a module at level `plan`.
llvm::Expected<CudaCode> makeCudaCode(mlir::ModuleOp module,
                                      llvm::StringRef chip);

/// Whether a diagnostic says that code is not made for this on GPUs, though the
/// method allows it.
bool saysNotImplemented(llvm::StringRef diagnostic);

/// What a device loads, by ptxas where that is found: machine code; otherwise
/// the PTX, which the driver compiles. `warning` becomes what ptxas complained
/// about if it failed, "" otherwise.
std::string makeCudaImage(const CudaCode &code, std::string &warning);

/// What image `makeCudaImage` gives depends on this ptxas: "" if there is none.
std::string describePtxas();

/// The chip that LLVM knows and that is nearest below a device's compute
/// capability (90 is 9.0). Fails for a device before 8.0.
llvm::Expected<std::string> getChip(int capability);
/// The same for a device of this machine.
llvm::Expected<std::string> getChipOfDevice(int ordinal);

/// A value for a function on GPUs; an array's data is where that is. Borrows
/// the sizes.
ArgumentValue toArgumentValue(const CpuArgument &argument);

/// An error of the runtime with the kind that corresponds; success for success.
llvm::Error toError(const RuntimeStatus &status);

} // namespace pisa

#endif // PISA_COMPILER_CUDA_H
