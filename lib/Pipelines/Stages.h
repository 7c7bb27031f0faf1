//===- Stages.h - What the pipelines share ----------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_PIPELINES_STAGES_H
#define PISA_LIB_PIPELINES_STAGES_H

#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace mlir::pisa {

void verifyLevel(OpPassManager &pm, StringRef level);
void cleanUp(OpPassManager &pm);
/// L1 to L1.5 for any target.
void addPhases(OpPassManager &pm,
               const PisaSetLoweringConfigPassOptions &config,
               bool checkInputs);

} // namespace mlir::pisa

#endif // PISA_LIB_PIPELINES_STAGES_H
