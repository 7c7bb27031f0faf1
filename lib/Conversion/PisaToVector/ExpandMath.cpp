//===- ExpandMath.cpp - exp2 and log2 on float32 into arithmetic -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <limits>

namespace mlir::pisa {
#define GEN_PASS_DEF_PISAEXPANDMATHPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;

namespace {

/// 2^x = 2^n 2^f with n the nearest integer and |f| <= 1/2. Adding 1.5 2^23
/// rounds x to an integer in the low mantissa bits, which shifted up are the
/// exponent of 2^n: no conversion to integer, whose result for NaN would be
/// poison. 2^f by a minimax polynomial of degree 5 whose constant term is 1, so
/// that integers are exact.
struct Exp2Polynomial : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not float32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto shaped = dyn_cast<VectorType>(type);
    Type intType = shaped ? Type(shaped.clone(b.getI32Type())) : b.getI32Type();
    auto f32 = [&](float value) -> Value {
      TypedAttr attr = b.getF32FloatAttr(value);
      if (shaped)
        attr = DenseElementsAttr::get(shaped, value);
      return arith::ConstantOp::create(b, attr);
    };
    auto i32 = [&](int32_t value) -> Value {
      TypedAttr attr = b.getI32IntegerAttr(value);
      if (shaped)
        attr = DenseElementsAttr::get(cast<ShapedType>(intType), value);
      return arith::ConstantOp::create(b, attr);
    };

    Value x = op.getOperand();
    Value magic = f32(12582912.0f); // 1.5 * 2^23
    Value rounded = arith::AddFOp::create(b, x, magic);
    Value n = arith::SubFOp::create(b, rounded, magic);
    Value f = arith::SubFOp::create(b, x, n);
    constexpr float kCoefficients[] = {1.3400432e-3f, 9.6703930e-3f,
                                       5.5503254e-2f, 2.4022107e-1f,
                                       6.9314718e-1f, 1.0f};
    Value p = f32(kCoefficients[0]);
    for (float c : llvm::drop_begin(kCoefficients))
      p = math::FmaOp::create(b, p, f, f32(c));
    Value bits = arith::BitcastOp::create(b, intType, rounded);
    Value exponent = arith::ShLIOp::create(b, bits, i32(23));
    Value scale = arith::BitcastOp::create(
        b, type, arith::AddIOp::create(b, exponent, i32(127 << 23)));
    Value result = arith::MulFOp::create(b, p, scale);

    // Ordered comparisons: NaN keeps its own result, which is NaN through f.
    Value low =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, f32(-126.0f));
    result = arith::SelectOp::create(b, low, f32(0.0f), result);
    // 127.5 and up would round n to 128, whose scale is not finite.
    Value high =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, x, f32(127.5f));
    result = arith::SelectOp::create(
        b, high, f32(std::numeric_limits<float>::infinity()), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ExpandMath : pisa::impl::PisaExpandMathPassBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Exp2Polynomial>(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::Log2Op::getOperationName();
    });
    // The patterns would make scalar constants for tensors: those are left
    // alone.
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::Exp2Op, math::Log2Op>(op) &&
          !isa<TensorType>(op->getResultTypes().front()))
        ops.push_back(op);
    });
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    if (failed(applyOpPatternsGreedily(ops, std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
