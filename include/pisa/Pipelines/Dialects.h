//===- Dialects.h - What the tools register ---------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_PIPELINES_DIALECTS_H
#define PISA_PIPELINES_DIALECTS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::pisa {

/// The dialects and interface implementations that our pipelines use: a short
/// list on purpose, so that the tools start fast.
void registerDialects(DialectRegistry &registry);

/// Our passes and pipelines, and the upstream passes that they are made of.
void registerPasses();

} // namespace mlir::pisa

#endif // PISA_PIPELINES_DIALECTS_H
