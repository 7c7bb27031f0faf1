//===- DistributeFragments.cpp - A warp's vectors to its lanes --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISADISTRIBUTEFRAGMENTSPASS
#include "pisa/Conversion/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;

/// The shape of mma.sync m16n8k16.
static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16, kWarp = 32;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

namespace {

enum class Kind { None, Matrix, Column, Row, Packed };

/// What part of a vector type a lane holds.
Kind getKind(VectorType type) {
  ArrayRef<int64_t> shape = type.getShape();
  if (type.getRank() != 2)
    return Kind::None;
  if (shape[0] == 1 && shape[1] % kColumns == 0)
    return Kind::Row;
  if (shape[0] != kRows)
    return Kind::None;
  if (shape[1] == 1)
    return Kind::Column;
  if (shape[1] % kColumns != 0)
    return Kind::None;
  Type element = type.getElementType();
  return element.isF16() || element.isBF16() ? Kind::Packed : Kind::Matrix;
}

/// Element `e` of a lane's part of an accumulator lies in row g + 8 rowOf(e)
/// and in column 2 t + columnOf(e), for lane 4 g + t.
int64_t rowOf(int64_t e) { return e % 4 / 2; }
int64_t columnOf(int64_t e) { return e / 4 * kColumns + e % 2; }

struct FragmentConverter : TypeConverter {
  FragmentConverter() {
    addConversion([](Type type) { return type; });
    addConversion([](VectorType type) -> Type {
      Type element = type.getElementType();
      switch (getKind(type)) {
      case Kind::None:
        return type;
      case Kind::Matrix:
        return VectorType::get({type.getDimSize(1) / 2}, element);
      case Kind::Column:
        return VectorType::get({2}, element);
      case Kind::Row:
        return VectorType::get({type.getDimSize(1) / 4}, element);
      case Kind::Packed:
        return VectorType::get({type.getDimSize(1) / 4},
                               IntegerType::get(type.getContext(), 32));
      }
      llvm_unreachable("covered switch");
    });
    addConversion([this](MemRefType type) -> Type {
      auto vector = dyn_cast<VectorType>(type.getElementType());
      if (!vector)
        return type;
      return MemRefType::Builder(type).setElementType(convertType(vector));
    });
  }
};

/// Builds what one lane does.
class LaneBuilder : public ImplicitLocOpBuilder {
public:
  LaneBuilder(Location loc, OpBuilder &b) : ImplicitLocOpBuilder(loc, b) {}

  Value idx(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  Value i32(int32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(*this, x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, idx(y)) : x; }
  Value mul(Value x, int64_t y) {
    return arith::MulIOp::create(*this, x, idx(y));
  }
  Value div(Value x, int64_t y) {
    return arith::DivUIOp::create(*this, x, idx(y));
  }
  Value rem(Value x, int64_t y) {
    return arith::RemUIOp::create(*this, x, idx(y));
  }
  Value lane() {
    return rem(gpu::ThreadIdOp::create(*this, gpu::Dimension::x), kWarp);
  }
  Value group() { return div(lane(), 4); }
  /// 2 t: the first column of a lane.
  Value firstColumn() { return mul(rem(lane(), 4), 2); }

  SmallVector<Value> elements(Value vector) {
    return llvm::to_vector_of<Value>(
        vector::ToElementsOp::create(*this, vector).getResults());
  }
  Value fromElements(ArrayRef<Value> elements) {
    auto type = VectorType::get({static_cast<int64_t>(elements.size())},
                                elements[0].getType());
    return vector::FromElementsOp::create(*this, type, elements);
  }
  Value call(StringRef name, Type type, ValueRange arguments) {
    return LLVM::CallIntrinsicOp::create(*this, type, getStringAttr(name),
                                         arguments)
        .getResults();
  }

  /// Four 8x8 matrices of a 16x16 block at [row, column] as ldmatrix reads
  /// them, in the order (0, 0), (8, 0), (0, 8), (8, 8) of (row, column), or
  /// with the two in the middle exchanged.
  SmallVector<Value> loadMatrices(Value memref, Value row, Value column,
                                  bool columnsFirst, bool transpose) {
    Value lane = this->lane();
    Value low = rem(lane, 8);
    Value middle = mul(rem(div(lane, 8), 2), 8);
    Value high = mul(div(lane, 16), 8);
    if (columnsFirst)
      std::swap(middle, high);
    SmallVector<Value> at = {add(row, add(low, middle)), add(column, high)};
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    Value parts = nvgpu::LdMatrixOp::create(
        *this, VectorType::get({4, 2}, element), memref, at, transpose,
        /*numTiles=*/4);
    Value words = vector::BitCastOp::create(
        *this, VectorType::get({4, 1}, getI32Type()), parts);
    return elements(words);
  }
};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Elementwise ops keep their form on a lane's elements.
struct Elementwise : ConversionPattern {
  Elementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op))
      return failure();
    for (Type type : op->getOperandTypes())
      if (auto vector = dyn_cast<VectorType>(type))
        if (getKind(vector) == Kind::Packed)
          return failure();
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertTypes(op->getResultTypes(), types)))
      return failure();
    OperationState state(op->getLoc(), op->getName(), operands, types,
                         op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    rewriter.replaceOp(op, rewriter.create(state)->getResults());
    return success();
  }
};

/// 16-bit fragments are pairs in a register.
struct Pack : OpConversionPattern<arith::TruncFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::TruncFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || getKind(type) != Kind::Packed)
      return failure();
    LaneBuilder b(op.getLoc(), rewriter);
    bool isF16 = type.getElementType().isF16();
    auto pair = VectorType::get({2}, type.getElementType());
    SmallVector<Value> elements = b.elements(adaptor.getIn()), words;
    for (size_t e = 0; e < elements.size(); e += 2) {
      Value both =
          b.call(isF16 ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn",
                 pair, {elements[e + 1], elements[e]});
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), both));
    }
    rewriter.replaceOp(op, b.fromElements(words));
    return success();
  }
};

struct Constant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto attr = dyn_cast<DenseElementsAttr>(op.getValue());
    auto type = dyn_cast<VectorType>(op.getType());
    if (!attr || !type)
      return failure();
    auto part = cast<VectorType>(getTypeConverter()->convertType(type));
    if (attr.isSplat()) {
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op,
                                                     attr.resizeSplat(part));
      return success();
    }
    // Consecutive numbers of rows or columns.
    if (!type.getElementType().isInteger(32))
      return rewriter.notifyMatchFailure(op, "not numbers of i32");
    auto numbers = llvm::to_vector(attr.getValues<int32_t>());
    LaneBuilder b(op.getLoc(), rewriter);
    bool consecutive = true;
    for (auto [i, number] : llvm::enumerate(numbers))
      consecutive &= number == numbers[0] + static_cast<int32_t>(i);
    if (!consecutive) {
      if (getKind(type) != Kind::Column)
        return rewriter.notifyMatchFailure(op, "not consecutive");
      return lookUp(op, numbers, b, rewriter);
    }
    SmallVector<Value> elements;
    bool isColumn = getKind(type) == Kind::Column;
    Value base = arith::IndexCastOp::create(
        b, b.getI32Type(), isColumn ? b.group() : b.firstColumn());
    for (int64_t e = 0; e < part.getNumElements(); ++e) {
      int64_t step = isColumn ? 8 * e : e / 2 * kColumns + e % 2;
      elements.push_back(arith::AddIOp::create(
          b, base, b.i32(numbers[0] + static_cast<int32_t>(step))));
    }
    rewriter.replaceOp(op, b.fromElements(elements));
    return success();
  }

  /// One of 16 numbers below 16, by row: two tables of eight, four bits each.
  static LogicalResult lookUp(arith::ConstantOp op, ArrayRef<int32_t> numbers,
                              LaneBuilder &b,
                              ConversionPatternRewriter &rewriter) {
    SmallVector<Value> elements;
    Value shift =
        arith::IndexCastOp::create(b, b.getI32Type(), b.mul(b.group(), 4));
    for (int64_t half = 0; half < 2; ++half) {
      uint32_t table = 0;
      for (int64_t row = 0; row < 8; ++row) {
        int32_t number = numbers[8 * half + row];
        if (number < 0 || number >= 16)
          return rewriter.notifyMatchFailure(op, "not numbers below 16");
        table |= static_cast<uint32_t>(number) << (4 * row);
      }
      Value word =
          arith::ShRUIOp::create(b, b.i32(static_cast<int32_t>(table)), shift);
      elements.push_back(arith::AndIOp::create(b, word, b.i32(15)));
    }
    rewriter.replaceOp(op, b.fromElements(elements));
    return success();
  }
};

struct Broadcast : OpConversionPattern<vector::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto part = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    auto source = dyn_cast<VectorType>(op.getSourceType());
    if (!source) {
      rewriter.replaceOpWithNewOp<vector::BroadcastOp>(op, part,
                                                       adaptor.getSource());
      return success();
    }
    if (getKind(op.getResultVectorType()) != Kind::Matrix)
      return rewriter.notifyMatchFailure(op, "not to a matrix");
    bool isColumn = getKind(source) == Kind::Column;
    SmallVector<int64_t> mask;
    for (int64_t e = 0; e < part.getNumElements(); ++e)
      mask.push_back(isColumn ? rowOf(e) : e / 4 * 2 + e % 2);
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(op, adaptor.getSource(),
                                                   adaptor.getSource(), mask);
    return success();
  }
};

/// A reduction over the columns, and the cast of its result to 16 x 1: lane
/// parts may have 16 elements too, so vectors of rank 1 are not fragments.
struct Reduce : OpConversionPattern<vector::ShapeCastOp> {
  using OpConversionPattern::OpConversionPattern;

  static Value combine(LaneBuilder &b, vector::CombiningKind kind, Value x,
                       Value y) {
    if (kind == vector::CombiningKind::ADD)
      return arith::AddFOp::create(b, x, y);
    return arith::MaximumFOp::create(b, x, y);
  }

  LogicalResult
  matchAndRewrite(vector::ShapeCastOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto reduction =
        op.getSource().getDefiningOp<vector::MultiDimReductionOp>();
    if (!reduction || !reduction->hasOneUse() ||
        getKind(op.getResultVectorType()) != Kind::Column ||
        getKind(reduction.getSourceVectorType()) != Kind::Matrix ||
        reduction.getReductionDims() != ArrayRef<int64_t>{1})
      return rewriter.notifyMatchFailure(op, "not a reduction over columns");
    vector::CombiningKind kind = reduction.getKind();
    if (kind != vector::CombiningKind::ADD &&
        kind != vector::CombiningKind::MAXIMUMF)
      return rewriter.notifyMatchFailure(op, "not a sum or maximum");
    DenseFPElementsAttr init;
    if (!matchPattern(reduction.getAcc(), m_Constant(&init)) || !init.isSplat())
      return rewriter.notifyMatchFailure(op, "not from a constant");
    LaneBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> all =
        b.elements(rewriter.getRemappedValue(reduction.getSource()));
    Value start = arith::ConstantOp::create(b, init.getSplatValue<FloatAttr>());
    SmallVector<Value> results;
    for (int64_t row = 0; row < 2; ++row) {
      SmallVector<Value> left;
      for (auto [e, x] : llvm::enumerate(all))
        if (rowOf(e) == row)
          left.push_back(x);
      while (left.size() > 1) {
        SmallVector<Value> next;
        for (size_t i = 0; i + 1 < left.size(); i += 2)
          next.push_back(combine(b, kind, left[i], left[i + 1]));
        if (left.size() % 2)
          next.push_back(left.back());
        left = next;
      }
      // The four lanes of a row.
      Value x = left[0];
      for (int32_t step : {1, 2}) {
        Value other =
            gpu::ShuffleOp::create(b, x, step, kWarp, gpu::ShuffleMode::XOR)
                .getShuffleResult();
        x = combine(b, kind, x, other);
      }
      results.push_back(combine(b, kind, x, start));
    }
    rewriter.replaceOp(op, b.fromElements(results));
    rewriter.eraseOp(reduction);
    return success();
  }
};

struct Load : OpConversionPattern<vector::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    VectorType type = op.getVectorType();
    LaneBuilder b(op.getLoc(), rewriter);
    ValueRange at = adaptor.getIndices();
    SmallVector<Value> elements;
    if (getKind(type) == Kind::Packed) {
      for (int64_t k = 0; k < type.getDimSize(1); k += kDepth)
        llvm::append_range(elements, b.loadMatrices(adaptor.getBase(), at[0],
                                                    b.add(at[1], k),
                                                    /*columnsFirst=*/false,
                                                    /*transpose=*/false));
    } else if (getKind(type) == Kind::Row) {
      auto pair = VectorType::get({2}, type.getElementType());
      Value column = b.add(at[1], b.firstColumn());
      for (int64_t c = 0; c < type.getDimSize(1); c += kColumns)
        llvm::append_range(
            elements,
            b.elements(vector::LoadOp::create(
                b, pair, adaptor.getBase(), ValueRange{at[0], b.add(column, c)},
                /*nontemporal=*/false, llvm::MaybeAlign(8))));
    } else if (getKind(type) == Kind::Column) {
      for (int64_t r : {0, 8})
        elements.push_back(memref::LoadOp::create(
            b, adaptor.getBase(),
            ValueRange{b.add(b.add(at[0], b.group()), r), at[1]}));
    } else {
      return rewriter.notifyMatchFailure(op, "not an operand, row or column");
    }
    rewriter.replaceOp(op, b.fromElements(elements));
    return success();
  }
};

struct Store : OpConversionPattern<vector::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    VectorType type = op.getVectorType();
    Kind kind = getKind(type);
    LaneBuilder b(op.getLoc(), rewriter);
    ValueRange at = adaptor.getIndices();
    Value base = adaptor.getBase();
    if (kind != Kind::Column && kind != Kind::Matrix && kind != Kind::Packed)
      return rewriter.notifyMatchFailure(op, "not rows");
    Value row = b.add(at[0], b.group());
    SmallVector<Value> elements = b.elements(adaptor.getValueToStore());
    if (kind == Kind::Column) {
      Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            b.firstColumn(), b.idx(0));
      auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
      for (int64_t r = 0; r < 2; ++r)
        memref::StoreOp::create(b, elements[r], base,
                                ValueRange{b.add(row, 8 * r), at[1]});
      rewriter.eraseOp(op);
      return success();
    }
    Value column = b.add(at[1], b.firstColumn());
    auto pair = VectorType::get({2}, type.getElementType());
    bool packed = kind == Kind::Packed;
    for (int64_t e = 0; e < type.getDimSize(1) / 2; e += 2) {
      Value both =
          packed ? Value(LLVM::BitcastOp::create(b, pair, elements[e / 2]))
                 : b.fromElements({elements[e], elements[e + 1]});
      vector::StoreOp::create(
          b, both, base,
          ValueRange{b.add(row, 8 * rowOf(e)), b.add(column, columnOf(e))},
          /*nontemporal=*/false, llvm::MaybeAlign(packed ? 4 : 8));
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// acc + a . b: b is read from workgroup memory as it is needed.
struct Contract : OpConversionPattern<vector::ContractionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::ContractionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto source = op.getRhs().getDefiningOp<vector::LoadOp>();
    auto type = dyn_cast<VectorType>(op.getResultType());
    auto lhs = op.getLhsType();
    if (!source || !type || getKind(type) != Kind::Matrix ||
        getKind(lhs) != Kind::Packed ||
        op.getKind() != vector::CombiningKind::ADD)
      return rewriter.notifyMatchFailure(op, "not a product from memory");
    AffineExpr m, n, k;
    bindDims(op.getContext(), m, n, k);
    auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
      return AffineMap::get(3, 0, exprs, op.getContext());
    };
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    bool transposed = maps[1] == mapOf({n, k});
    if (maps[0] != mapOf({m, k}) || maps[2] != mapOf({m, n}) ||
        (!transposed && maps[1] != mapOf({k, n})))
      return rewriter.notifyMatchFailure(op, "not a plain product");
    int64_t columns = type.getDimSize(1), depth = lhs.getDimSize(1);
    if (columns % kRows != 0 || depth % kDepth != 0)
      return rewriter.notifyMatchFailure(op, "not whole steps of 16");

    LaneBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> a = b.elements(adaptor.getLhs());
    SmallVector<Value> acc = b.elements(adaptor.getAcc());
    Value row = source.getIndices()[0], column = source.getIndices()[1];
    for (int64_t d = 0; d < depth; d += kDepth)
      for (int64_t c = 0; c < columns; c += kRows) {
        // In both forms the first two words are the first 8 columns' operand.
        SmallVector<Value> words =
            transposed
                ? b.loadMatrices(source.getBase(), b.add(row, c),
                                 b.add(column, d), /*columnsFirst=*/true,
                                 /*transpose=*/false)
                : b.loadMatrices(source.getBase(), b.add(row, d),
                                 b.add(column, c), /*columnsFirst=*/false,
                                 /*transpose=*/true);
        for (int64_t half = 0; half < 2; ++half) {
          auto part = MutableArrayRef(acc).slice(c / 2 + 4 * half, 4);
          multiply(b, lhs.getElementType(), ArrayRef(a).slice(d / 4, 4),
                   ArrayRef(words).slice(2 * half, 2), part);
        }
      }
    rewriter.replaceOp(op, b.fromElements(acc));
    return success();
  }

  static void multiply(LaneBuilder &b, Type element, ArrayRef<Value> a,
                       ArrayRef<Value> words, MutableArrayRef<Value> acc) {
    bool isF16 = element.isF16();
    auto operand = [&](Value word) -> Value {
      // f16 operands are pairs in the op's types, bf16 ones are not.
      if (!isF16)
        return word;
      return LLVM::BitcastOp::create(b, VectorType::get({2}, element), word);
    };
    SmallVector<Value> left, right;
    for (Value word : a)
      left.push_back(operand(word));
    for (Value word : words)
      right.push_back(operand(word));
    Type f32 = b.getF32Type();
    auto result =
        LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
    NVVM::MMATypes type = isF16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value d =
        NVVM::MmaOp::create(b, result, left, right, ValueRange(acc),
                            ArrayRef<int64_t>{kRows, kColumns, kDepth},
                            /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
                            std::array<NVVM::MMATypes, 2>{type, type},
                            std::array<NVVM::MMALayout, 2>{
                                NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (int64_t i = 0; i < 4; ++i)
      acc[i] = LLVM::ExtractValueOp::create(b, d, i);
  }
};

struct Alloca : OpConversionPattern<memref::AllocaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::AllocaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<memref::AllocaOp>(
        op, cast<MemRefType>(getTypeConverter()->convertType(op.getType())));
    return success();
  }
};

struct LoadPart : OpConversionPattern<memref::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<memref::LoadOp>(op, adaptor.getMemref(),
                                                adaptor.getIndices());
    return success();
  }
};

struct StorePart : OpConversionPattern<memref::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<memref::StoreOp>(
        op, adaptor.getValue(), adaptor.getMemref(), adaptor.getIndices());
    return success();
  }
};

/// Approximate functions of the special function unit, element by element.
template <typename OpTy> struct Approximate : OpConversionPattern<OpTy> {
  Approximate(const TypeConverter &converter, MLIRContext *context,
              StringRef intrinsic)
      : OpConversionPattern<OpTy>(converter, context), intrinsic(intrinsic) {}

  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LaneBuilder b(op.getLoc(), rewriter);
    Value x = adaptor.getOperand();
    if (!getElementTypeOrSelf(x).isF32())
      return rewriter.notifyMatchFailure(op, "not float32");
    auto function = [&](Value x) {
      return b.call(intrinsic, b.getF32Type(), x);
    };
    if (!isa<VectorType>(x.getType())) {
      rewriter.replaceOp(op, function(x));
      return success();
    }
    SmallVector<Value> elements = b.elements(x);
    for (Value &element : elements)
      element = function(element);
    rewriter.replaceOp(op, b.fromElements(elements));
    return success();
  }
  StringRef intrinsic;
};

/// Whether a value of 16 rows is only ever the right operand of products.
bool isRightOperand(vector::LoadOp op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto contract = dyn_cast<vector::ContractionOp>(use.getOwner());
    return contract && contract.getRhs() == use.get() &&
           contract.getLhs() != use.get();
  });
}

/// Constants of fragments belong to the warps: canonicalization has moved them
/// out of the tasks.
void sinkConstants(Operation *root) {
  root->walk<WalkOrder::PreOrder>([](scf::ForallOp task) {
    llvm::SetVector<Value> captures;
    getUsedValuesDefinedAbove(task.getRegion(), captures);
    OpBuilder b = OpBuilder::atBlockBegin(task.getBody());
    for (Value value : captures) {
      auto constant = value.getDefiningOp<arith::ConstantOp>();
      if (!constant || !isa<VectorType>(constant.getType()))
        continue;
      Value clone = b.clone(*constant)->getResult(0);
      replaceAllUsesInRegionWith(value, clone, task.getRegion());
      if (constant->use_empty())
        constant->erase();
    }
    return WalkResult::skip();
  });
}

struct DistributeFragments
    : pisa::impl::PisaDistributeFragmentsPassBase<DistributeFragments> {
  void getDependentDialects(DialectRegistry &registry) const override {
    PisaDistributeFragmentsPassBase::getDependentDialects(registry);
    // One lane of four stores a column.
    registry.insert<scf::SCFDialect>();
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    sinkConstants(getOperation());
    FragmentConverter converter;
    RewritePatternSet patterns(context);
    patterns.add<Pack, Constant, Broadcast, Reduce, Load, Store, Contract,
                 Alloca, LoadPart, StorePart>(converter, context,
                                              /*benefit=*/2);
    patterns.add<Elementwise>(converter, context);
    patterns.add<Approximate<math::Exp2Op>>(converter, context,
                                            "llvm.nvvm.ex2.approx.ftz.f");
    patterns.add<Approximate<math::Log2Op>>(converter, context,
                                            "llvm.nvvm.lg2.approx.ftz.f");

    ConversionTarget target(*context);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.addDynamicallyLegalOp<vector::LoadOp>([&](vector::LoadOp op) {
      return isRightOperand(op) || converter.isLegal(op.getOperation());
    });
    // Converted with the cast of its result.
    target.addLegalOp<vector::MultiDimReductionOp>();
    target.addIllegalOp<math::Exp2Op, math::Log2Op>();
    target.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return converter.isLegal(op); });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
