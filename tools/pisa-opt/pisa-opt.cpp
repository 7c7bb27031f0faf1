//===- pisa-opt.cpp - Optimizer driver --------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"
#include "pisa/Pipelines/Dialects.h"
#include "pisa/Pipelines/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::pisa::registerDialects(registry);
  mlir::pisa::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "pisa optimizer driver\n", registry));
}
