//===- Patterns.h - Patterns of convert-pisa-to-vector ----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_PISATOVECTOR_PATTERNS_H
#define PISA_LIB_CONVERSION_PISATOVECTOR_PATTERNS_H

#include "../Emitter/Emitter.h"

namespace mlir::pisa {

void populatePackPatterns(RewritePatternSet &patterns);
void populateListPatterns(RewritePatternSet &patterns);
void populatePoolPatterns(RewritePatternSet &patterns);
void populateScorePatterns(RewritePatternSet &patterns);
void populateAttendPatterns(RewritePatternSet &patterns);

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_PISATOVECTOR_PATTERNS_H
