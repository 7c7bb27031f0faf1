//===- Function.h - What a function of a module takes -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_COMPILER_FUNCTION_H
#define PISA_COMPILER_FUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace pisa {

/// The argument whose buffer holds a returned tensor: follows destinations.
/// None for a new value.
std::optional<unsigned> getOutputArgument(mlir::Value value);

/// Compiled code trusts that dynamic sizes agree. The verifiers know which
/// must: they see the function once more, with these sizes in its types (one
/// list an argument; those of scalars are ignored). Explanations are
/// diagnostics on the function's context.
llvm::Error checkShapes(mlir::func::FuncOp func,
                        llvm::ArrayRef<llvm::ArrayRef<int64_t>> sizes);

} // namespace pisa

#endif // PISA_COMPILER_FUNCTION_H
