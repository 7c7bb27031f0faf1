//===- PyramidLayout.cpp - Where a pyramid's nodes live ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

int64_t PyramidLayout::getNumLeaves(int64_t keys) const {
  return llvm::divideCeilSigned(keys, blockSize);
}

int64_t PyramidLayout::getNumLevels(int64_t keys) const {
  int64_t levels = 0;
  for (int64_t n = getNumLeaves(keys); n > 0;
       n = n == 1 ? 0 : llvm::divideCeilSigned(n, fanout))
    ++levels;
  return levels;
}

int64_t PyramidLayout::getNumNodes(int64_t keys, int64_t level) const {
  // ceil(ceil(n / g) / g) = ceil(n / g^2), but the loop cannot overflow.
  int64_t n = getNumLeaves(keys);
  for (int64_t l = 1; l < level; ++l)
    n = llvm::divideCeilSigned(n, fanout);
  return n;
}

int64_t PyramidLayout::getLevelOffset(int64_t capacity, int64_t level) const {
  int64_t offset = 0;
  int64_t n = getNumLeaves(capacity);
  for (int64_t l = 1; l < level; ++l) {
    offset += n;
    n = llvm::divideCeilSigned(n, fanout);
  }
  return offset;
}

int64_t PyramidLayout::getNumRows(int64_t capacity) const {
  return getLevelOffset(capacity, getNumLevels(capacity) + 1);
}

static Value constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value PyramidLayout::buildNumLeaves(OpBuilder &b, Location loc,
                                    Value keys) const {
  return arith::CeilDivSIOp::create(b, loc, keys,
                                    constantIndex(b, loc, blockSize));
}

Value PyramidLayout::buildNumLevels(OpBuilder &b, Location loc,
                                    Value leaves) const {
  // while (n > 1) { n = ceil(n / g); ++levels; } from levels = min(leaves, 1).
  Value one = constantIndex(b, loc, 1);
  Value g = constantIndex(b, loc, fanout);
  Value first = arith::MinSIOp::create(b, loc, leaves, one);
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType(), b.getIndexType()},
      ValueRange{leaves, first},
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                           args[0], one);
        scf::ConditionOp::create(b, loc, more, args);
      },
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value n = arith::CeilDivSIOp::create(b, loc, args[0], g);
        Value levels = arith::AddIOp::create(b, loc, args[1], one);
        scf::YieldOp::create(b, loc, ValueRange{n, levels});
      });
  return loop.getResult(1);
}

Value PyramidLayout::buildSpan(OpBuilder &b, Location loc, Value level) const {
  Value one = constantIndex(b, loc, 1);
  Value g = constantIndex(b, loc, fanout);
  auto loop = scf::ForOp::create(
      b, loc, one, level, one, ValueRange{one},
      [&](OpBuilder &b, Location loc, Value, ValueRange args) {
        Value span = arith::MulIOp::create(b, loc, args[0], g);
        scf::YieldOp::create(b, loc, span);
      });
  return loop.getResult(0);
}

Value PyramidLayout::buildLevelOffset(OpBuilder &b, Location loc,
                                      Value capacityLeaves, Value level) const {
  Value zero = constantIndex(b, loc, 0);
  Value one = constantIndex(b, loc, 1);
  Value g = constantIndex(b, loc, fanout);
  auto loop = scf::ForOp::create(
      b, loc, one, level, one, ValueRange{zero, capacityLeaves},
      [&](OpBuilder &b, Location loc, Value, ValueRange args) {
        Value offset = arith::AddIOp::create(b, loc, args[0], args[1]);
        Value n = arith::CeilDivSIOp::create(b, loc, args[1], g);
        scf::YieldOp::create(b, loc, ValueRange{offset, n});
      });
  return loop.getResult(0);
}
