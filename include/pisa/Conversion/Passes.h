//===- Passes.h - Conversions out of the pisa dialect -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_CONVERSION_PASSES_H
#define PISA_CONVERSION_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::pisa {

#define GEN_PASS_DECL
#include "pisa/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pisa/Conversion/Passes.h.inc"

} // namespace mlir::pisa

#endif // PISA_CONVERSION_PASSES_H
