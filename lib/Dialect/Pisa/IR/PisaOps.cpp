//===- PisaOps.cpp - Verifiers of the problem-level ops ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

using namespace mlir;
using namespace mlir::pisa;

static PyramidLayout layoutOf(ParamsAttr params) {
  return {params.getBlockSize(), params.getFanout()};
}

static constexpr int64_t kAny = ShapedType::kDynamic;

static int64_t numLeaves(ParamsAttr params, int64_t capacity) {
  return ShapedType::isDynamic(capacity)
             ? kAny
             : layoutOf(params).getNumLeaves(capacity);
}
static int64_t numRows(ParamsAttr params, int64_t capacity) {
  return ShapedType::isDynamic(capacity)
             ? kAny
             : layoutOf(params).getNumRows(capacity);
}

/// Summaries are stored in the summary type of the parameters.
static LogicalResult verifySummaries(Operation *op, ParamsAttr params, Value k,
                                     Value pyramid, Value atoms) {
  Type type = params.getSummaryType(shaped(k).getElementType());
  return failure(
      failed(verifyElementType(op, "pyramid", pyramid, type,
                               "the summary type")) ||
      failed(verifyElementType(op, "atoms", atoms, type, "the summary type")));
}

/// The pre-score's operands: both or neither, and their shapes.
static LogicalResult verifyAtoms(Operation *op, ParamsAttr params, Value k,
                                 Value atoms, Value outlier) {
  if (!atoms != !outlier)
    return op->emitOpError() << "expected 'atoms' and 'outlier' to be given "
                                "together, but got only "
                             << (atoms ? "'atoms'" : "'outlier'");
  if (!atoms)
    return success();
  if (params.getBlockSize() % params.getLeafAtoms() != 0)
    return op->emitOpError()
           << "expected 'leaf_atoms' to divide 'block_size' = "
           << params.getBlockSize() << ", but got " << params.getLeafAtoms();
  int64_t leaves = numLeaves(params, dimOf(k, 2));
  return verifyShapes(op, {{"atoms",
                            atoms,
                            {dimOf(k, 0), dimOf(k, 1), leaves,
                             params.getLeafAtoms(), dimOf(k, 3)},
                            "[B, Hkv, leaves, A, D]"},
                           {"outlier",
                            outlier,
                            {dimOf(k, 0), dimOf(k, 1), leaves},
                            "[B, Hkv, leaves]"}});
}

/// Packed sequences: both or neither, of one length.
static LogicalResult verifySeqlens(Operation *op, Value q, Value k) {
  if (!q != !k)
    return op->emitOpError()
           << "expected 'cu_seqlens_q' and 'cu_seqlens_k' to be "
              "given together, but got only "
           << (q ? "'cu_seqlens_q'" : "'cu_seqlens_k'");
  if (!q)
    return success();
  return verifyShape(op, {"cu_seqlens_k", k, {dimOf(q, 0)}, "[B + 1]"});
}

/// Dense causal attention aligns the last query with the last key.
static LogicalResult verifyCausalLengths(Operation *op, ParamsAttr params,
                                         Value q, Value k, Value qStart,
                                         Value cuSeqlens) {
  int64_t queries = dimOf(q, 2), keys = dimOf(k, 2);
  if (!params.getCausal() || qStart || cuSeqlens ||
      ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys) ||
      queries <= keys || keys == 0)
    return success();
  return op->emitOpError()
         << "expected at most as many queries as keys in causal "
            "attention without 'q_start', but got "
         << queries << " queries and " << keys << " keys";
}

LogicalResult BuildPyramidOp::verify() {
  Value k = getK();
  ParamsAttr params = getParams();
  PyramidLayout layout = layoutOf(params);
  if (failed(verifyDps(*this)))
    return failure();
  // build-2
  if (failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyHeadDim(*this, "pyramid", getPyramid())) ||
      failed(verifyHeads(*this, dimOf(k, 1), dimOf(k, 1))) ||
      failed(verifyStaticDim(*this, "pyramid", getPyramid(), 1)))
    return failure();
  // build-1, build-4
  if (failed(verifyCapacity(*this, k)))
    return failure();
  int64_t levels = ShapedType::isDynamic(dimOf(k, 2))
                       ? kAny
                       : layout.getNumLevels(dimOf(k, 2));
  bool packed = static_cast<bool>(getCuSeqlensK());
  if (failed(verifyShapes(
          *this, {{"k_len", getKLen(), {packed ? kAny : dimOf(k, 0)}, "[B]"},
                  {"pyramid",
                   getPyramid(),
                   {dimOf(k, 0), dimOf(k, 1),
                    packed ? kAny : numRows(params, dimOf(k, 2)), dimOf(k, 3)},
                   "[B, Hkv, nodes, D]"},
                  {"open_sums",
                   getOpenSums(),
                   {dimOf(k, 0), dimOf(k, 1), levels, dimOf(k, 3)},
                   "[B, Hkv, levels, D]"},
                  {"page_table",
                   getPageTable(),
                   {packed ? kAny : dimOf(k, 0), kAny},
                   "[B, P]"}})))
    return failure();
  // build-3
  if (failed(verifySummaries(*this, params, k, getPyramid(), getAtoms())))
    return failure();
  // build-5
  return verifyAtoms(*this, params, k, getAtoms(), getOutlier());
}

LogicalResult RouteOp::verify() {
  Value q = getQ(), k = getK();
  ParamsAttr params = getParams();
  if (failed(verifyDps(*this)))
    return failure();
  bool packed = getCuSeqlensQ() && getCuSeqlensK();
  int64_t batch = packed ? kAny : dimOf(q, 0);
  // route-2
  if (failed(verifyHeadDim(*this, "q", q)) ||
      failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyHeadDim(*this, "pyramid", getPyramid())) ||
      failed(verifyHeads(*this, dimOf(q, 1), dimOf(k, 1))) ||
      failed(verifyStaticDim(*this, "pyramid", getPyramid(), 1)))
    return failure();
  // route-1
  if (failed(verifyCapacity(*this, k)) ||
      failed(verifySameElementType(*this, "k", k, "q", q)) ||
      failed(verifyShapes(
          *this, {{"k",
                   k,
                   {dimOf(q, 0), dimOf(k, 1), kAny, dimOf(q, 3)},
                   "[B, Hkv, Tk, D]"},
                  {"pyramid",
                   getPyramid(),
                   {dimOf(q, 0), dimOf(k, 1),
                    packed ? kAny : numRows(params, dimOf(k, 2)), dimOf(q, 3)},
                   "[B, Hkv, nodes, D]"},
                  {"k_len", getKLen(), {batch}, "[B]"},
                  {"q_start", getQStart(), {batch}, "[B]"},
                  {"page_table", getPageTable(), {batch, kAny}, "[B, P]"}})))
    return failure();
  // route-3
  if (failed(verifySummaries(*this, params, k, getPyramid(), getAtoms())))
    return failure();
  // route-4
  int64_t queryBlocks = ceilDivDim(dimOf(q, 2), params.getQueryBlock());
  SmallVector<int64_t> list = {dimOf(q, 0), dimOf(k, 1), queryBlocks,
                               params.getTopk()};
  if (failed(verifyShapes(
          *this, {{"indices", getIndices(), list, "[B, Hkv, NQ, K]"},
                  {"count",
                   getCount(),
                   {dimOf(q, 0), dimOf(k, 1), queryBlocks},
                   "[B, Hkv, NQ]"},
                  {"scores", getScores(), list, "[B, Hkv, NQ, K]"}})) ||
      failed(verifyStaticDim(*this, "indices", getIndices(), 3)))
    return failure();
  // route-5
  if (failed(verifyAtoms(*this, params, k, getAtoms(), getOutlier())))
    return failure();
  if (params.usesPreScore() != static_cast<bool>(getAtoms()))
    return emitOpError()
           << "expected 'atoms' and 'outlier' exactly when 'rerank' "
              "is given, but got "
           << (getAtoms() ? "them without 'rerank'" : "'rerank' without them");
  // route-6, route-7
  if (failed(verifySeqlens(*this, getCuSeqlensQ(), getCuSeqlensK())))
    return failure();
  return verifyCausalLengths(*this, params, q, k, getQStart(), getCuSeqlensQ());
}

LogicalResult AttentionOp::verify() {
  Value q = getQ(), k = getK(), v = getV();
  ParamsAttr params = getParams();
  if (failed(verifyDps(*this)))
    return failure();
  bool packed = getCuSeqlensQ() && getCuSeqlensK();
  int64_t batch = packed ? kAny : dimOf(q, 0);
  // attention-2
  if (failed(verifyHeadDim(*this, "q", q)) ||
      failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyHeadDim(*this, "v", v)) ||
      failed(verifyHeads(*this, dimOf(q, 1), dimOf(k, 1))))
    return failure();
  // attention-1
  if (failed(verifyCapacity(*this, k)) ||
      failed(verifySameElementType(*this, "k", k, "q", q)) ||
      failed(verifySameElementType(*this, "v", v, "q", q)) ||
      failed(verifyShapes(
          *this, {{"k",
                   k,
                   {dimOf(q, 0), dimOf(k, 1), kAny, dimOf(q, 3)},
                   "[B, Hkv, Tk, D]"},
                  {"v",
                   v,
                   {dimOf(q, 0), dimOf(k, 1), dimOf(k, 2), kAny},
                   "[B, Hkv, Tk, Dv]"},
                  {"k_len", getKLen(), {batch}, "[B]"},
                  {"q_start", getQStart(), {batch}, "[B]"},
                  {"page_table", getPageTable(), {batch, kAny}, "[B, P]"}})))
    return failure();
  // attention-3
  int64_t queryBlocks = ceilDivDim(dimOf(q, 2), params.getQueryBlock());
  if (failed(verifyShape(*this, {"indices",
                                 getIndices(),
                                 {dimOf(q, 0), dimOf(k, 1), queryBlocks, kAny},
                                 "[B, Hkv, NQ, K]"})) ||
      failed(verifyStaticDim(*this, "indices", getIndices(), 3)))
    return failure();
  // attention-4
  if (failed(verifySameElementType(*this, "o", getO(), "q", q)) ||
      failed(verifyShapes(
          *this, {{"o",
                   getO(),
                   {dimOf(q, 0), dimOf(q, 1), dimOf(q, 2), dimOf(v, 3)},
                   "[B, Hq, Tq, Dv]"},
                  {"lse",
                   getLse(),
                   {dimOf(q, 0), dimOf(q, 1), dimOf(q, 2)},
                   "[B, Hq, Tq]"}})) ||
      failed(verifyStaticDim(*this, "o", getO(), 3)))
    return failure();
  // attention-5, attention-6
  if (failed(verifySeqlens(*this, getCuSeqlensQ(), getCuSeqlensK())))
    return failure();
  return verifyCausalLengths(*this, params, q, k, getQStart(), getCuSeqlensQ());
}
