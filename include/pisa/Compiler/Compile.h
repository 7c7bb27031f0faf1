//===- Compile.h - From a module to code, level by level --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_COMPILER_COMPILE_H
#define PISA_COMPILER_COMPILE_H

#include "pisa/Target/CpuJit.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace pisa {

class ObjectCache;

/// How a module is compiled for the CPU.
struct CompileOptions {
  std::string cpu;          ///< "" for the host
  bool checkInputs = false; ///< report lists with an entry twice at run time
  /// Called with the name of each level (pisa::getLevelNames) that the module
  /// has come to.
  std::function<void(llvm::StringRef, mlir::ModuleOp)> afterLevel;
};

/// An `afterLevel` that prints the module after the levels in `levels`.
std::function<void(llvm::StringRef, mlir::ModuleOp)>
printAfterLevels(llvm::StringSet<> levels, llvm::raw_ostream &os);

/// Lowers `module` in place and compiles it to an object. Failures of passes
/// are diagnostics on the module's context and a short error here.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileToObjectForCpu(mlir::ModuleOp module, const CompileOptions &options);

/// The same, and links the object into this process.
llvm::Expected<std::unique_ptr<CpuModule>>
compileForCpu(mlir::ModuleOp module, const CompileOptions &options);

/// Everything that `compileToObjectForCpu` and `compileForCuda` need in a context.
void registerCompiler(mlir::DialectRegistry &registry);

/// A new context for one compilation, without threads of its own.
std::unique_ptr<mlir::MLIRContext> createContext();

} // namespace pisa

#endif // PISA_COMPILER_COMPILE_H
