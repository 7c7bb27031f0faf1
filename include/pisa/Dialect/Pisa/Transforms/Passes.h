//===- Passes.h - Passes on the pisa dialect --------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_DIALECT_PISA_TRANSFORMS_PASSES_H
#define PISA_DIALECT_PISA_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::pisa {

#define GEN_PASS_DECL
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"

/// Attaches bufferization to the dialect's ops.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

#define GEN_PASS_REGISTRATION
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"

} // namespace mlir::pisa

#endif // PISA_DIALECT_PISA_TRANSFORMS_PASSES_H
