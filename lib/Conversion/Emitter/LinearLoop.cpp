//===- LinearLoop.cpp - Iterations of a parallel loop in a row --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinearLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::pisa;

LinearLoop LinearLoop::get(ImplicitLocOpBuilder &b, scf::ForallOp loop) {
  LinearLoop result;
  result.lower = loop.getLowerBound(b);
  SmallVector<Value> upper = loop.getUpperBound(b);
  result.steps = loop.getStep(b);
  result.total = arith::ConstantIndexOp::create(b, 1);
  for (auto [begin, end, step] : llvm::zip(result.lower, upper, result.steps)) {
    Value distance = arith::SubIOp::create(b, end, begin);
    result.counts.push_back(arith::CeilDivSIOp::create(b, distance, step));
    result.total = arith::MulIOp::create(b, result.total, result.counts.back());
  }
  return result;
}

llvm::SetVector<Value> LinearLoop::getCaptures(scf::ForallOp loop) const {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(loop.getRegion(), captures);
  for (ArrayRef<Value> bounds :
       {ArrayRef(lower), ArrayRef(steps), ArrayRef(counts)})
    captures.insert(bounds.begin(), bounds.end());
  return captures;
}

void LinearLoop::mapIterators(ImplicitLocOpBuilder &b, scf::ForallOp loop,
                              Value number, IRMapping &mapping) const {
  Value rest = number;
  SmallVector<Value> ivs = llvm::to_vector(loop.getInductionVars());
  for (int64_t i = ivs.size() - 1; i >= 0; --i) {
    Value count = mapping.lookup(counts[i]);
    Value position =
        i == 0 ? rest : Value(arith::RemUIOp::create(b, rest, count));
    rest = i == 0 ? rest : Value(arith::DivUIOp::create(b, rest, count));
    Value scaled = arith::MulIOp::create(b, position, mapping.lookup(steps[i]));
    mapping.map(ivs[i], Value(arith::AddIOp::create(b, mapping.lookup(lower[i]),
                                                    scaled)));
  }
}
