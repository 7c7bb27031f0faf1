//===- AggregateProblemOps.cpp - Problem ops into phases --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

namespace {
/// Creates the phases of one problem: they share its location and inherit its
/// discardable attributes, the lowering config among them.
class PhaseBuilder {
public:
  PhaseBuilder(OpBuilder &b, Operation *problem)
      : b(b), loc(problem->getLoc()), problem(problem) {}

  template <typename OpTy, typename... Args> OpTy create(Args &&...args) {
    auto op = OpTy::create(b, loc, std::forward<Args>(args)...);
    op->setDiscardableAttrs(problem->getDiscardableAttrDictionary());
    return op;
  }

  Value empty(ArrayRef<OpFoldResult> sizes, Type elementType) {
    return tensor::EmptyOp::create(b, loc, sizes, elementType);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value dim(Value value, int64_t i) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, value, i));
  }
  OpFoldResult ceilDiv(OpFoldResult value, int64_t divisor) {
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineSymbolExpr(0).ceilDiv(divisor), {value});
  }

  Value dimI32(Value value, int64_t i) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), dim(value, i));
  }

  /// A [B] tensor of i32, element by element.
  Value mapPerBatch(Value perBatch,
                    function_ref<Value(OpBuilder &, Value)> map) {
    Value init = empty(tensor::getMixedSizes(b, loc, perBatch), b.getI32Type());
    AffineMap identity = b.getMultiDimIdentityMap(1);
    auto generic = linalg::GenericOp::create(
        b, loc, init.getType(), perBatch, init,
        ArrayRef<AffineMap>{identity, identity},
        ArrayRef<utils::IteratorType>{utils::IteratorType::parallel},
        [&](OpBuilder &b, Location loc, ValueRange args) {
          linalg::YieldOp::create(b, loc, map(b, args[0]));
        });
    return generic.getResult(0);
  }

  /// `kLen` clamped to [0, capacity]: lengths are data, and nothing past the
  /// capacity may be read whatever they hold.
  Value clampLength(Value kLen, Value k) {
    Value capacity = dimI32(k, 2);
    Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    return mapPerBatch(kLen, [&](OpBuilder &b, Value length) -> Value {
      Value most = arith::MinSIOp::create(b, loc, length, capacity);
      return arith::MaxSIOp::create(b, loc, most, zero);
    });
  }

  /// `qStart`, or where it is absent in causal attention k_len - Tq.
  Value resolveStart(ParamsAttr params, Value qStart, Value kLen, Value q) {
    if (qStart || !params.getCausal())
      return qStart;
    Value queries = dimI32(q, 2);
    return mapPerBatch(kLen, [&](OpBuilder &b, Value length) -> Value {
      return arith::SubIOp::create(b, loc, length, queries);
    });
  }

  /// Scores of `leaves` from the inverted list: for each leaf the queries that
  /// listed it.
  Value scoreByLeaf(ParamsAttr params, int64_t gather, int64_t limit, Value q,
                    Value k, Value leaves, Value kLen, Value scale,
                    Value init) {
    Type i32 = b.getI32Type();
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, leaves);
    OpFoldResult entries = times(sizes[2], shaped(leaves).getDimSize(3));
    OpFoldResult blocks =
        ceilDiv(tensor::getMixedSize(b, loc, k, 2), params.getBlockSize());
    auto listOf = [&](OpFoldResult length) {
      return empty({sizes[0], sizes[1], length}, i32);
    };
    Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value counts =
        linalg::FillOp::create(b, loc, zero, listOf(blocks)).getResult(0);
    IntegerAttr limitAttr = b.getI64IntegerAttr(limit);
    IntegerAttr gatherAttr = b.getI64IntegerAttr(gather);
    counts = create<CountEntriesOp>(counts.getType(), params, limitAttr, leaves,
                                    counts)
                 .getResult(0);
    AffineExpr s0, s1;
    bindSymbols(b.getContext(), s0, s1);
    OpFoldResult rowsSize =
        affine::makeComposedFoldedAffineApply(b, loc, s0 + 1, {blocks});
    OpFoldResult items = affine::makeComposedFoldedAffineApply(
        b, loc, s0 + s1.ceilDiv(gather), {blocks, entries});
    Value rows = listOf(rowsSize), cursors = listOf(blocks);
    Value work = empty({sizes[0], sizes[1], items, b.getIndexAttr(2)}, i32);
    auto placed = create<PlaceEntriesOp>(
        TypeRange{rows.getType(), cursors.getType(), work.getType()}, params,
        gatherAttr, counts, rows, cursors, work);
    Value list = listOf(entries);
    auto listed = create<ListEntriesOp>(
        TypeRange{cursors.getType(), list.getType()}, params, limitAttr, leaves,
        index(0), placed.getResult(1), list);
    return create<ScoreEntriesOp>(init.getType(), params, gatherAttr, q, k,
                                  placed.getResult(0), listed.getResult(1),
                                  placed.getResult(2), kLen, scale, init)
        .getResult(0);
  }

  OpFoldResult times(OpFoldResult value, int64_t factor) {
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineSymbolExpr(0) * factor, {value});
  }

  OpBuilder &b;
  Location loc;
  Operation *problem;
};
} // namespace

/// What no strategy lowers so far.
static LogicalResult refuseUnsupported(Operation *op, Value cuSeqlens,
                                       Value pageTable) {
  if (!cast<DestinationStyleOpInterface>(op).hasPureTensorSemantics())
    return op->emitOpError("expected tensors to decompose, but got memrefs");
  if (cuSeqlens)
    return op->emitOpError(
        "expected the dense layout, but got 'cu_seqlens': packed "
        "sequences are not supported by this lowering");
  if (pageTable)
    return op->emitOpError(
        "expected contiguous keys, but got 'page_table': paged "
        "keys are not supported by this lowering");
  return success();
}

/// Whether a problem is known to have no element of `value`.
static bool isEmpty(Value value) {
  return llvm::is_contained(shaped(value).getShape(), 0);
}

/// Inits filled with constants: the answer of a problem without keys.
static SmallVector<Value> fillAll(OpBuilder &b, Location loc,
                                  ArrayRef<std::pair<Value, double>> inits) {
  SmallVector<Value> results;
  for (auto [init, value] : inits) {
    if (!init)
      continue;
    Type type = shaped(init).getElementType();
    TypedAttr attr = isa<FloatType>(type)
                         ? TypedAttr(b.getFloatAttr(type, value))
                         : b.getIntegerAttr(type, static_cast<int64_t>(value));
    Value constant = arith::ConstantOp::create(b, loc, attr);
    results.push_back(
        linalg::FillOp::create(b, loc, constant, init).getResult(0));
  }
  return results;
}

FailureOr<SmallVector<Value>> BuildPyramidOp::decomposeOperation(OpBuilder &b) {
  if (failed(refuseUnsupported(*this, getCuSeqlensK(), getPageTable())))
    return failure();
  if (isEmpty(getK()))
    return llvm::to_vector_of<Value>(getDpsInits());
  PhaseBuilder p(b, *this);
  Location loc = getLoc();
  Value k = getK(), kLen = p.clampLength(getKLen(), k);

  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, getPyramid());
  // Float32 summaries would share the type and sizes of their sums, and CSE
  // would merge the two buffers: one row more keeps them apart.
  SmallVector<OpFoldResult> sumSizes = sizes;
  if (shaped(getPyramid()).getElementType().isF32() &&
      !shaped(k).getElementType().isF32())
    sumSizes[2] = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineSymbolExpr(0) + 1, {sizes[2]});
  Value sums = p.empty(sumSizes, b.getF32Type());
  sizes[2] =
      p.ceilDiv(tensor::getMixedSize(b, loc, k, 2), getParams().getBlockSize());
  Value leafSums = p.empty(sizes, b.getF32Type());

  SmallVector<Type> leafTypes = {leafSums.getType()};
  if (getAtoms())
    leafTypes.append({getAtoms().getType(), getOutlier().getType()});
  auto leaves =
      p.create<PoolLeavesOp>(leafTypes, getParams(), k, kLen, p.index(0),
                             leafSums, getAtoms(), getOutlier());

  SmallVector<Type> nodeTypes = {sums.getType(), getPyramid().getType()};
  if (getOpenSums())
    nodeTypes.push_back(getOpenSums().getType());
  auto nodes =
      p.create<PoolNodesOp>(nodeTypes, getParams(), k, leaves.getResult(0),
                            kLen, sums, getPyramid(), getOpenSums());

  // In the order of the inits: pyramid, open_sums, atoms, outlier.
  SmallVector<Value> results =
      llvm::to_vector_of<Value>(nodes.getResults().drop_front());
  llvm::append_range(results, leaves.getResults().drop_front());
  return results;
}

FailureOr<SmallVector<Value>> RouteOp::decomposeOperation(OpBuilder &b) {
  if (failed(refuseUnsupported(*this, getCuSeqlensQ(), getPageTable())))
    return failure();
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (isEmpty(getQ()) || isEmpty(getK()))
    return fillAll(b, getLoc(),
                   {{getIndices(), -1}, {getCount(), 0}, {getScores(), -inf}});
  PhaseBuilder p(b, *this);
  Location loc = getLoc();
  ParamsAttr params = getParams();
  Value q = getQ(), k = getK(), scale = getScale();
  Value kLen = p.clampLength(getKLen(), k);
  Value qStart = p.resolveStart(params, getQStart(), kLen, q);
  Value zero = p.index(0);
  // Only a block of several queries can be clipped by the sequence's end.
  Value queryLength = params.getQueryBlock() > 1 ? p.dim(q, 2) : Value();

  SmallVector<OpFoldResult> listSizes =
      tensor::getMixedSizes(b, loc, getIndices());
  auto emptyList = [&](int64_t width, Type elementType) {
    listSizes.back() = b.getIndexAttr(width);
    return p.empty(listSizes, elementType);
  };
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto select = [&](Value nodes, Value scores, Value kept, Value count,
                    Value keptScores) {
    SmallVector<Type> types = {kept.getType()};
    for (Value init : {count, keptScores})
      if (init)
        types.push_back(init.getType());
    return p.create<SelectTopkOp>(types, params, nodes, scores, kLen, qStart,
                                  zero, queryLength, /*level=*/Value(), kept,
                                  count, keptScores);
  };

  int64_t width = params.getMaxCandidates();
  Value capacityLeaves = getValueOrCreateConstantIndexOp(
      b, loc,
      p.ceilDiv(tensor::getMixedSize(b, loc, k, 2), params.getBlockSize()));
  Value init = emptyList(width, i32);
  Value leaves = p.create<RouteUpperOp>(init.getType(), params, q, getPyramid(),
                                        kLen, qStart, zero, queryLength,
                                        capacityLeaves, scale, init)
                     .getResult(0);

  // Scores that were asked for are computed also where nothing is dropped.
  int64_t lastLimit = getScores() ? 0 : params.getTopk();
  auto prescore = [&](int64_t limit) {
    Value init = emptyList(width, f32);
    return p
        .create<PrescoreBlocksOp>(init.getType(), params,
                                  b.getI64IntegerAttr(limit), q, k, getAtoms(),
                                  getOutlier(), leaves, kLen, scale, init)
        .getResult(0);
  };

  Value scores;
  if (params.getRerank() == 0) {
    scores = prescore(lastLimit);
  } else {
    if (params.getRerank()) {
      int64_t rerank = *params.getRerank();
      Value pre = prescore(rerank);
      leaves = select(leaves, pre, emptyList(rerank, i32), {}, {}).getResult(0);
      width = rerank;
    }
    Value init = emptyList(width, f32);
    auto config = (*this)->getAttrOfType<LoweringConfigAttr>("lowering_config");
    scores = config && config.getGather() > 0
                 ? p.scoreByLeaf(params, config.getGather(), lastLimit, q, k,
                                 leaves, kLen, scale, init)
                 : p.create<ScoreBlocksOp>(init.getType(), params,
                                           b.getI64IntegerAttr(lastLimit), q, k,
                                           leaves, kLen, scale, init)
                       .getResult(0);
  }
  auto last = select(leaves, scores, getIndices(), getCount(), getScores());
  return llvm::to_vector_of<Value>(last.getResults());
}

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  if (failed(refuseUnsupported(*this, getCuSeqlensQ(), getPageTable())))
    return failure();
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (isEmpty(getQ()) || isEmpty(getK()))
    return fillAll(b, getLoc(), {{getO(), 0}, {getLse(), -inf}});
  PhaseBuilder p(b, *this);
  Value kLen = p.clampLength(getKLen(), getK());
  Value qStart = p.resolveStart(getParams(), getQStart(), kLen, getQ());
  auto tiles = p.create<AttendTilesOp>(
      getResultTypes(), getParams(), getQ(), getK(), getV(), getIndices(), kLen,
      qStart, p.index(0), getScale(), getO(), getLse());
  return llvm::to_vector_of<Value>(tiles.getResults());
}
