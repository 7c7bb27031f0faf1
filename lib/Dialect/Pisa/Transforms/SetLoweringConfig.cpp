//===- SetLoweringConfig.cpp - The tiling policy ----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISASETLOWERINGCONFIGPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// What the inner loops may hold in registers.
struct RegisterBudget {
  int64_t accumulators; ///< vector registers for accumulators
  int64_t lanes;        ///< float32 lanes of one
  int64_t columnTile;   ///< keys held at a time

  /// AVX-512 has 32 registers: 24 accumulators leave room for four vectors of
  /// keys and the broadcasts. AVX2 and SSE have 16.
  static RegisterBudget forVectorBits(int64_t bits) {
    return bits >= 512 ? RegisterBudget{24, 16, 64}
                       : RegisterBudget{12, bits / 32, bits / 8};
  }
};

/// Queries of one task. Tasks share packed blocks among their queries, so they
/// want to be large; 64 tokens see few more blocks than one in real models.
constexpr int64_t kQueryTile = 64;
constexpr int64_t kLeafTile = 256;

/// Rows held at a time: all rows of a query block if they fit, otherwise equal
/// parts of them.
int64_t getRowTile(int64_t rows, const RegisterBudget &budget) {
  int64_t most = std::max<int64_t>(1, budget.accumulators * budget.lanes /
                                          budget.columnTile);
  return llvm::divideCeil(rows, llvm::divideCeil(rows, most));
}

LoweringConfigAttr getConfig(Operation *op, ParamsAttr params, Value q, Value k,
                             int64_t vectorBits) {
  RegisterBudget budget = RegisterBudget::forVectorBits(vectorBits);
  int64_t heads = 1;
  if (q)
    heads = cast<ShapedType>(q.getType()).getDimSize(1) /
            cast<ShapedType>(k.getType()).getDimSize(1);
  int64_t queryBlock = params.getQueryBlock();
  int64_t queryTile = llvm::alignTo(kQueryTile, queryBlock);
  return LoweringConfigAttr::get(op->getContext(), queryTile, kLeafTile,
                                 getRowTile(queryBlock * heads, budget),
                                 budget.columnTile);
}

struct SetLoweringConfig
    : pisa::impl::PisaSetLoweringConfigPassBase<SetLoweringConfig> {
  using PisaSetLoweringConfigPassBase::PisaSetLoweringConfigPassBase;

  void runOnOperation() override {
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512) {
      getOperation()->emitError()
          << "expected 'vector-bits' to be 128, 256 or 512, but got "
          << vectorBits.getValue();
      return signalPassFailure();
    }
    getOperation()->walk([&](Operation *op) {
      Value q, k;
      ParamsAttr params;
      if (auto build = dyn_cast<BuildPyramidOp>(op))
        params = build.getParams();
      else if (auto route = dyn_cast<RouteOp>(op))
        std::tie(params, q, k) =
            std::tuple(route.getParams(), route.getQ(), route.getK());
      else if (auto attention = dyn_cast<AttentionOp>(op))
        std::tie(params, q, k) = std::tuple(attention.getParams(),
                                            attention.getQ(), attention.getK());
      if (params && !op->hasAttr("lowering_config"))
        op->setAttr("lowering_config", getConfig(op, params, q, k, vectorBits));
    });
  }
};
} // namespace
