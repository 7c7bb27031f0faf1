//===- CpuJit.h - LLVM dialect to machine code in this process --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TARGET_CPUJIT_H
#define PISA_TARGET_CPUJIT_H

#include "pisa/Runtime/CpuRuntime.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir
namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace pisa {

/// The CPU that code is compiled for.
struct CpuTarget {
  std::string cpu;      ///< LLVM's name of it
  std::string features; ///< LLVM's feature string
  int64_t vectorBits;   ///< width of its vector registers: 128, 256 or 512

  /// The CPU of that name (as `llc -mcpu=help` lists them), the host for "".
  static llvm::Expected<CpuTarget> get(llvm::StringRef cpu = "");
};

/// An argument of a compiled function: a scalar, or a strided array with unit
/// stride in its last dimension.
struct CpuArgument {
  enum class Kind { F32, I32, Index, Array };
  Kind kind = Kind::Array;
  float f32 = 0;
  int32_t i32 = 0;
  int64_t index = 0;
  void *data = nullptr;
  llvm::SmallVector<int64_t> sizes, strides; ///< in elements

  static CpuArgument scalar(float value);
  static CpuArgument array(void *data, llvm::ArrayRef<int64_t> sizes);
};

/// Machine code of a module in the LLVM dialect (the output of
/// `pisa-cpu-pipeline`): a relocatable ELF object that `CpuModule::load` takes,
/// in this process or in another on such a CPU.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileToObject(mlir::ModuleOp module, const CpuTarget &target);

/// A module of compiled functions.
class CpuModule {
public:
  /// A function of the module; valid as long as that is alive.
  using Entry = void (*)(void **);

  /// Links an object from `compileToObject`.
  static llvm::Expected<std::unique_ptr<CpuModule>>
  load(std::unique_ptr<llvm::MemoryBuffer> object);
  ~CpuModule();

  llvm::Expected<Entry> lookup(llvm::StringRef function);

  /// Calls a function. Argument kinds and ranks must be those of the function
  /// before bufferization; fails if the code reports an error.
  static llvm::Error call(Entry entry, llvm::ArrayRef<CpuArgument> arguments,
                          Invocation &invocation);
  /// The same by name; fails if there is no such function.
  llvm::Error call(llvm::StringRef function,
                   llvm::ArrayRef<CpuArgument> arguments,
                   Invocation &invocation);

private:
  CpuModule();
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// Registers the translations that `compileToObject` needs.
void registerCpuTranslations(mlir::DialectRegistry &registry);

} // namespace pisa

#endif // PISA_TARGET_CPUJIT_H
