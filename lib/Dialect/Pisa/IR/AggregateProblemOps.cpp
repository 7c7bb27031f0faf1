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
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
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
  /// A tensor of its own: empty ones of the same sizes are merged, and so is
  /// what fills them, which costs copies of what is written later.
  Value alloc(ArrayRef<OpFoldResult> sizes, Type elementType) {
    SmallVector<Value> dynamicSizes;
    SmallVector<int64_t> shape;
    dispatchIndexOpFoldResults(sizes, dynamicSizes, shape);
    return bufferization::AllocTensorOp::create(
        b, loc, RankedTensorType::get(shape, elementType), dynamicSizes);
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

  /// The inverse of lists: for each block of keys the entries that name it.
  struct Inverse {
    Value counts;  ///< entries of each block
    Value rows;    ///< where each block's entries start
    Value cursors; ///< where each block's next entry goes
    Value entries; ///< numbers of entries, by block
    Value items;   ///< work: blocks and first entries
  };
  /// Room for the inverse of `numLists` lists.
  Inverse getInverseInits(int64_t gather, Value lists, OpFoldResult numLists,
                          int64_t blockSize, Value k) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, lists);
    OpFoldResult entries = times(numLists, shaped(lists).getDimSize(3));
    OpFoldResult blocks =
        ceilDiv(tensor::getMixedSize(b, loc, k, 2), blockSize);
    auto listOf = [&](OpFoldResult length) {
      return empty({sizes[0], sizes[1], length}, b.getI32Type());
    };
    AffineExpr s0, s1;
    bindSymbols(b.getContext(), s0, s1);
    OpFoldResult rows =
        affine::makeComposedFoldedAffineApply(b, loc, s0 + 1, {blocks});
    OpFoldResult items = affine::makeComposedFoldedAffineApply(
        b, loc, s0 + s1.ceilDiv(gather), {blocks, entries});
    return {
        alloc({sizes[0], sizes[1], blocks}, b.getI32Type()), listOf(rows),
        listOf(blocks), listOf(entries),
        empty({sizes[0], sizes[1], items, b.getIndexAttr(2)}, b.getI32Type())};
  }
  /// What tells which entries are forced.
  struct ForcedBy {
    Value kLen, qStart, queryLength;
  };
  /// Lists of at most `limit` entries are left out, and so are forced entries
  /// if `forced` tells of them.
  Inverse invert(ParamsAttr params, int64_t gather, int64_t limit, Value lists,
                 const Inverse &inits, const ForcedBy &forced = {}) {
    Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value counts =
        linalg::FillOp::create(b, loc, zero, inits.counts).getResult(0);
    IntegerAttr limitAttr = b.getI64IntegerAttr(limit);
    counts = create<CountEntriesOp>(counts.getType(), params, limitAttr, lists,
                                    index(0), forced.kLen, forced.qStart,
                                    forced.queryLength, counts)
                 .getResult(0);
    auto placed = create<PlaceEntriesOp>(
        TypeRange{inits.rows.getType(), inits.cursors.getType(),
                  inits.items.getType()},
        params, b.getI64IntegerAttr(gather), counts, inits.rows, inits.cursors,
        inits.items);
    auto listed = create<ListEntriesOp>(
        TypeRange{inits.cursors.getType(), inits.entries.getType()}, params,
        limitAttr, lists, index(0), forced.kLen, forced.qStart,
        forced.queryLength, placed.getResult(1), inits.entries);
    return {counts, placed.getResult(0), listed.getResult(0),
            listed.getResult(1), placed.getResult(2)};
  }

  /// Scores of `leaves` from the inverted list: for each leaf the queries that
  /// listed it.
  Value scoreByLeaf(ParamsAttr params, int64_t gather, int64_t limit, Value q,
                    Value k, Value leaves, Value kLen, Value scale, Value init,
                    const ForcedBy &forced) {
    Inverse inits =
        getInverseInits(gather, leaves, tensor::getMixedSize(b, loc, leaves, 2),
                        params.getBlockSize(), k);
    Inverse inverse = invert(params, gather, limit, leaves, inits, forced);
    return create<ScoreEntriesOp>(
               init.getType(), params, b.getI64IntegerAttr(gather), q, k,
               inverse.rows, inverse.entries, inverse.items, kLen, scale, init)
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
  Value sums = p.alloc(sizes, b.getF32Type());
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
    // Forced leaves are kept whatever their score, unless the caller wants it.
    PhaseBuilder::ForcedBy forced;
    if (!getScores())
      forced = {kLen, qStart, queryLength};
    scores = config && config.getGather() > 0
                 ? p.scoreByLeaf(params, config.getGather(), lastLimit, q, k,
                                 leaves, kLen, scale, init, forced)
                 : p.create<ScoreBlocksOp>(init.getType(), params,
                                           b.getI64IntegerAttr(lastLimit), q, k,
                                           leaves, kLen, scale, init)
                       .getResult(0);
  }
  auto last = select(leaves, scores, getIndices(), getCount(), getScores());
  return llvm::to_vector_of<Value>(last.getResults());
}

/// Attention key block by key block, a chunk of queries at a time: each chunk
/// inverts its lists, and its partial outputs are merged before the next.
static SmallVector<Value> attendByBlock(PhaseBuilder &p, AttentionOp op,
                                        LoweringConfigAttr config, Value kLen,
                                        Value qStart) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  ParamsAttr params = op.getParams();
  Value q = op.getQ(), indices = op.getIndices();
  int64_t queryBlock = params.getQueryBlock();
  int64_t listWidth = shaped(indices).getDimSize(3);
  int64_t rows =
      queryBlock * shaped(q).getDimSize(1) / shaped(op.getK()).getDimSize(1);
  AffineExpr s0, s1, s2;
  bindSymbols(b.getContext(), s0, s1, s2);
  SmallVector<OpFoldResult> qSizes = tensor::getMixedSizes(b, loc, q);
  SmallVector<OpFoldResult> listSizes = tensor::getMixedSizes(b, loc, indices);
  SmallVector<OpFoldResult> oSizes = tensor::getMixedSizes(b, loc, op.getO());

  // Queries of a chunk: all sequences share the scratch, and no more of it is
  // taken than a short problem needs.
  int64_t tile = llvm::alignTo(config.getQueryTile(), queryBlock);
  OpFoldResult length = qSizes[2];
  Value batch = arith::MaxSIOp::create(b, loc, p.dim(q, 0), p.index(1));
  Value tiles =
      arith::DivSIOp::create(b, loc, p.index(config.getChunk() / tile), batch);
  Value shared = arith::MulIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, tiles, p.index(1)), p.index(tile));
  OpFoldResult chunk = affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(0, 2, {s0, s1.ceilDiv(tile) * tile}, b.getContext()),
      {shared, length});
  OpFoldResult chunkLists = p.ceilDiv(chunk, queryBlock);
  OpFoldResult partialRows = p.times(chunkLists, listWidth * rows);

  // Scratch of all chunks.
  PhaseBuilder::Inverse inverseInits =
      p.getInverseInits(config.getGather(), indices, chunkLists,
                        params.getBlockSize(), op.getK());
  Value partial = p.empty({listSizes[0], listSizes[1], partialRows, oSizes[3]},
                          shaped(q).getElementType());
  Value partialLse =
      p.empty({listSizes[0], listSizes[1], partialRows}, b.getF32Type());

  SmallVector<Value> inits = {op.getO()};
  if (op.getLse())
    inits.push_back(op.getLse());
  auto loop = scf::ForOp::create(
      b, loc, p.index(0), getValueOrCreateConstantIndexOp(b, loc, length),
      getValueOrCreateConstantIndexOp(b, loc, chunk), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value base = loop.getInductionVar();
  ValueRange carried = loop.getRegionIterArgs();
  OpFoldResult size = affine::makeComposedFoldedAffineMin(
      b, loc, AffineMap::get(0, 3, {s0, s1 - s2}, b.getContext()),
      {chunk, length, base});
  OpFoldResult firstList = affine::makeComposedFoldedAffineApply(
      b, loc, s0.floorDiv(queryBlock), {base});
  // Part of a tensor with `count` entries from `first` on in dimension 2.
  auto part = [&](Value whole, SmallVector<OpFoldResult> sizes,
                  OpFoldResult first, OpFoldResult count) {
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
    offsets[2] = first;
    sizes[2] = count;
    return tensor::ExtractSliceOp::create(b, loc, whole, offsets, sizes, ones);
  };
  Value someQ = part(q, qSizes, base, size);
  Value lists =
      part(indices, listSizes, firstList, p.ceilDiv(size, queryBlock));
  PhaseBuilder::Inverse inverse = p.invert(params, config.getGather(),
                                           /*limit=*/0, lists, inverseInits);
  auto attended = p.create<AttendEntriesOp>(
      TypeRange{partial.getType(), partialLse.getType()}, params,
      b.getI64IntegerAttr(config.getGather()), someQ, op.getK(), op.getV(),
      inverse.rows, inverse.entries, inverse.items, kLen, qStart, base,
      op.getScale(), partial, partialLse);
  SmallVector<OpFoldResult> lseSizes(oSizes.begin(), oSizes.begin() + 3);
  auto someO = part(carried[0], oSizes, base, size);
  SmallVector<tensor::ExtractSliceOp> outs = {someO};
  if (op.getLse())
    outs.push_back(part(carried[1], lseSizes, base, size));
  SmallVector<Type> types;
  for (tensor::ExtractSliceOp out : outs)
    types.push_back(out.getType());
  auto merged = p.create<MergeEntriesOp>(
      types, params, lists, attended.getResult(0), attended.getResult(1),
      p.index(0), outs[0], outs.size() > 1 ? Value(outs[1]) : Value());
  SmallVector<Value> next;
  for (auto [out, result, whole] :
       llvm::zip(outs, merged.getResults(), carried))
    next.push_back(tensor::InsertSliceOp::create(
        b, loc, result, whole, out.getMixedOffsets(), out.getMixedSizes(),
        out.getMixedStrides()));
  scf::YieldOp::create(b, loc, next);
  return llvm::to_vector_of<Value>(loop.getResults());
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
  auto config = (*this)->getAttrOfType<LoweringConfigAttr>("lowering_config");
  if (config && config.getChunk() > 0)
    return attendByBlock(p, *this, config, kLen, qStart);
  auto tiles = p.create<AttendTilesOp>(
      getResultTypes(), getParams(), getQ(), getK(), getV(), getIndices(), kLen,
      qStart, p.index(0), getScale(), getO(), getLse());
  return llvm::to_vector_of<Value>(tiles.getResults());
}
