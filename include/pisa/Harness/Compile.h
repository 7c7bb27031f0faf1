//===- Compile.h - Running the CPU pipeline level by level ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_HARNESS_COMPILE_H
#define PISA_HARNESS_COMPILE_H

#include "pisa/Target/CpuJit.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace pisa {

/// How a module is compiled for the CPU.
struct CompileOptions {
  std::string cpu;          ///< "" for the host
  bool checkInputs = false; ///< report lists with an entry twice at run time
  /// Levels (pisa::getLevelNames) after which the IR is printed to `printTo`.
  llvm::StringSet<> printAfter;
  llvm::raw_ostream *printTo = nullptr;
};

/// Lowers `module` in place and compiles it. Failures of passes are diagnostics
/// on the module's context and a short error here.
llvm::Expected<std::unique_ptr<CpuModule>>
compileForCpu(mlir::ModuleOp module, const CompileOptions &options);

} // namespace pisa

#endif // PISA_HARNESS_COMPILE_H
