//===- LinearLoop.h - Iterations of a parallel loop in a row ----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_CONVERSION_EMITTER_LINEARLOOP_H
#define PISA_LIB_CONVERSION_EMITTER_LINEARLOOP_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::pisa {

/// The iterations of an `scf.forall` numbered in row-major order: the last
/// dimension runs fastest.
struct LinearLoop {
  SmallVector<Value> lower, steps;
  SmallVector<Value> counts; ///< iterations of each dimension
  Value total;               ///< of all

  /// Emits the counts before the loop.
  static LinearLoop get(ImplicitLocOpBuilder &b, scf::ForallOp loop);
  /// What the loop's body and `mapIterators` use from outside.
  llvm::SetVector<Value> getCaptures(scf::ForallOp loop) const;
  /// Maps the loop's induction variables to those of iteration `number`, where
  /// `mapping` has the captures.
  void mapIterators(ImplicitLocOpBuilder &b, scf::ForallOp loop, Value number,
                    IRMapping &mapping) const;
};

} // namespace mlir::pisa

#endif // PISA_LIB_CONVERSION_EMITTER_LINEARLOOP_H
