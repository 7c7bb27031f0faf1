//===- NvptxTarget.h - Kernels as PTX, host functions as plans --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The end of pisa-nvptx-pipeline: a module at level `plan` becomes PTX text
// and, for each function, the list of launches that pisa/Runtime executes.
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TARGET_NVPTXTARGET_H
#define PISA_TARGET_NVPTXTARGET_H

#include "pisa/Runtime/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace pisa {

struct NvptxTarget {
  /// sm_80 and later, as LLVM names them: sm_80, sm_86, sm_89, sm_90, ...
  std::string chip = "sm_80";

  /// Fails, naming the value, for a chip that LLVM does not know or that is
  /// older than sm_80.
  static llvm::Expected<NvptxTarget> get(llvm::StringRef chip);
  /// Workgroup memory that one task may have on the chip, in bytes.
  int64_t getMaxSharedBytes() const;
};

/// The kernels of a module at level `plan` as PTX of the lowest version that
/// the chip has. Fails if the code calls a function that nothing defines
/// (libdevice's, for one).
llvm::Expected<std::string> compileToPtx(mlir::ModuleOp module,
                                         const NvptxTarget &target);

/// The host side of a function at level `plan`. Arguments are named by the
/// attribute `pisa.name` or by their number. Emits an error and fails for what
/// is not sizes, scratch or launches.
mlir::FailureOr<Plan> buildPlan(mlir::func::FuncOp func);

/// Translations to LLVM IR that `compileToPtx` needs.
void registerNvptxTranslations(mlir::DialectRegistry &registry);

} // namespace pisa

#endif // PISA_TARGET_NVPTXTARGET_H
