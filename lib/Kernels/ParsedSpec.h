//===- ParsedSpec.h - Specs that are right, as modules ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_KERNELS_PARSEDSPEC_H
#define PISA_LIB_KERNELS_PARSEDSPEC_H

#include "pisa/Compiler/Compile.h"
#include "pisa/Compiler/Status.h"
#include "pisa/Kernels/KernelSpec.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

namespace pisa {

/// What the dialect allows but code is not made for, and what no module could
/// be printed from.
llvm::Error checkSpec(const KernelSpec &spec);

/// A parsed module and what was said about it.
class ParsedSpec {
public:
  static llvm::Expected<std::unique_ptr<ParsedSpec>>
  parse(const std::string &text) {
    std::unique_ptr<ParsedSpec> parsed(new ParsedSpec());
    parsed->module =
        mlir::parseSourceString<mlir::ModuleOp>(text, parsed->context.get());
    if (!parsed->module)
      return makeError(ErrorKind::InvalidValue, parsed->said);
    return parsed;
  }
  mlir::ModuleOp getModule() { return *module; }
  const std::string &getSaid() const { return said; }

private:
  ParsedSpec()
      : context(createContext()),
        handler(context.get(), [this](mlir::Diagnostic &diagnostic) {
          if (said.empty())
            said = diagnostic.str();
          return mlir::success();
        }) {}
  std::unique_ptr<mlir::MLIRContext> context;
  std::string said; // the first message
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace pisa

#endif // PISA_LIB_KERNELS_PARSEDSPEC_H
