//===- PisaPhaseOps.cpp - Verifiers of the phase ops ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"

using namespace mlir;
using namespace mlir::pisa;

static constexpr int64_t kAny = ShapedType::kDynamic;

/// [B, Hkv, NQ, width] for the lists of queries `q` on the kv heads of `kv`.
static SmallVector<int64_t> listShape(ParamsAttr params, Value q, Value kv,
                                      int64_t width) {
  return {dimOf(q, 0), dimOf(kv, 1),
          ceilDivDim(dimOf(q, 2), params.getQueryBlock()), width};
}

/// q and k (or the pyramid): head dims, head counts, batch.
static LogicalResult verifyQueries(Operation *op, Value q, StringRef kvName,
                                   Value kv) {
  if (failed(verifyHeadDim(op, "q", q)) ||
      failed(verifyHeadDim(op, kvName, kv)) ||
      failed(verifyHeads(op, dimOf(q, 1), dimOf(kv, 1))))
    return failure();
  return verifyShape(op, {kvName,
                          kv,
                          {dimOf(q, 0), dimOf(kv, 1), kAny, dimOf(q, 3)},
                          "[B, Hkv, T, D]"});
}

/// Without positions there is nothing to be causal about.
static LogicalResult verifyPosition(Operation *op, ParamsAttr params,
                                    Value qStart) {
  if (params.getCausal() && !qStart)
    return op->emitOpError(
        "expected 'q_start' in causal attention, but got none");
  return success();
}

LogicalResult PoolLeavesOp::verify() {
  Value k = getK();
  if (failed(verifyDps(*this)) || failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyHeadDim(*this, "sums", getSums())))
    return failure();
  int64_t leaves = dimOf(getSums(), 2);
  if (!getAtoms() != !getOutlier())
    return emitOpError()
           << "expected 'atoms' and 'outlier' to be given together, "
              "but got only "
           << (getAtoms() ? "'atoms'" : "'outlier'");
  if (getAtoms() &&
      getParams().getBlockSize() % getParams().getLeafAtoms() != 0)
    return emitOpError() << "expected 'leaf_atoms' to divide 'block_size' = "
                         << getParams().getBlockSize() << ", but got "
                         << getParams().getLeafAtoms();
  return verifyShapes(*this, {{"k_len", getKLen(), {dimOf(k, 0)}, "[B]"},
                              {"sums",
                               getSums(),
                               {dimOf(k, 0), dimOf(k, 1), kAny, dimOf(k, 3)},
                               "[B, Hkv, leaves, D]"},
                              {"atoms",
                               getAtoms(),
                               {dimOf(k, 0), dimOf(k, 1), leaves,
                                getParams().getLeafAtoms(), dimOf(k, 3)},
                               "[B, Hkv, leaves, A, D]"},
                              {"outlier",
                               getOutlier(),
                               {dimOf(k, 0), dimOf(k, 1), leaves},
                               "[B, Hkv, leaves]"}});
}

LogicalResult PoolNodesOp::verify() {
  Value k = getK(), sums = getSums();
  if (failed(verifyDps(*this)) || failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyHeadDim(*this, "sums", sums)) ||
      failed(verifyHeadDim(*this, "leaf_sums", getLeafSums())) ||
      failed(verifyHeadDim(*this, "pyramid", getPyramid())))
    return failure();
  int64_t rows = dimOf(getPyramid(), 2);
  if (dimOf(sums, 2) != kAny && rows != kAny && dimOf(sums, 2) < rows)
    return emitOpError() << "expected 'sums' to hold the " << rows
                         << " rows of 'pyramid', but got " << dimOf(sums, 2);
  return verifyShapes(*this,
                      {{"k_len", getKLen(), {dimOf(k, 0)}, "[B]"},
                       {"leaf_sums",
                        getLeafSums(),
                        {dimOf(k, 0), dimOf(k, 1), kAny, dimOf(k, 3)},
                        "[B, Hkv, leaves, D]"},
                       {"sums",
                        sums,
                        {dimOf(k, 0), dimOf(k, 1), kAny, dimOf(k, 3)},
                        "[B, Hkv, nodes, D]"},
                       {"pyramid",
                        getPyramid(),
                        {dimOf(k, 0), dimOf(k, 1), kAny, dimOf(k, 3)},
                        "[B, Hkv, nodes, D]"},
                       {"open_sums",
                        getOpenSums(),
                        {dimOf(k, 0), dimOf(k, 1), kAny, dimOf(k, 3)},
                        "[B, Hkv, levels, D]"}});
}

LogicalResult RouteUpperOp::verify() {
  if (failed(verifyDps(*this)) ||
      failed(verifyQueries(*this, getQ(), "pyramid", getPyramid())) ||
      failed(verifyPosition(*this, getParams(), getQStart())))
    return failure();
  return verifyShapes(*this,
                      {{"k_len", getKLen(), {dimOf(getQ(), 0)}, "[B]"},
                       {"q_start", getQStart(), {dimOf(getQ(), 0)}, "[B]"},
                       {"leaves", getLeaves(),
                        listShape(getParams(), getQ(), getPyramid(),
                                  getParams().getMaxCandidates()),
                        "[B, Hkv, NQ, g W]"}});
}

LogicalResult ScoreBlocksOp::verify() {
  if (failed(verifyDps(*this)) ||
      failed(verifyQueries(*this, getQ(), "k", getK())) ||
      failed(verifySameElementType(*this, "k", getK(), "q", getQ())) ||
      failed(verifyStaticDim(*this, "leaves", getLeaves(), 3)))
    return failure();
  SmallVector<int64_t> list =
      listShape(getParams(), getQ(), getK(), dimOf(getLeaves(), 3));
  return verifyShapes(*this,
                      {{"k_len", getKLen(), {dimOf(getQ(), 0)}, "[B]"},
                       {"leaves", getLeaves(), list, "[B, Hkv, NQ, n]"},
                       {"scores", getScores(), list, "[B, Hkv, NQ, n]"}});
}

/// Positions tell which entries are forced.
template <typename OpTy> static LogicalResult verifyForced(OpTy op) {
  if (op.getKLen() && op.getParams().getCausal() && !op.getQStart())
    return op.emitOpError("expected 'q_start' beside 'k_len' in causal "
                          "attention, but got none");
  if (!op.getKLen() && (op.getQStart() || op.getQueryLength()))
    return op.emitOpError("expected 'k_len' beside 'q_start' and "
                          "'query_length', but got none");
  return success();
}

LogicalResult CountEntriesOp::verify() {
  if (failed(verifyDps(*this)) || failed(verifyForced(*this)) ||
      failed(verifyStaticDim(*this, "lists", getLists(), 3)))
    return failure();
  return verifyShape(*this, {"counts",
                             getCounts(),
                             {dimOf(getLists(), 0), dimOf(getLists(), 1), kAny},
                             "[B, Hkv, leaves]"});
}

LogicalResult PlaceEntriesOp::verify() {
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "gather", getGather())))
    return failure();
  Value counts = getCounts();
  int64_t batch = dimOf(counts, 0), heads = dimOf(counts, 1);
  int64_t leaves = dimOf(counts, 2);
  return verifyShapes(
      *this,
      {{"rows",
        getRows(),
        {batch, heads, leaves == kAny ? kAny : leaves + 1},
        "[B, Hkv, leaves + 1]"},
       {"cursors", getCursors(), {batch, heads, leaves}, "[B, Hkv, leaves]"},
       {"items", getItems(), {batch, heads, kAny, 2}, "[B, Hkv, items, 2]"}});
}

LogicalResult ListEntriesOp::verify() {
  if (failed(verifyDps(*this)) || failed(verifyForced(*this)) ||
      failed(verifyStaticDim(*this, "lists", getLists(), 3)))
    return failure();
  int64_t batch = dimOf(getLists(), 0), heads = dimOf(getLists(), 1);
  return verifyShapes(
      *this,
      {{"cursors", getCursors(), {batch, heads, kAny}, "[B, Hkv, leaves]"},
       {"entries", getEntries(), {batch, heads, kAny}, "[B, Hkv, entries]"}});
}

LogicalResult ScoreEntriesOp::verify() {
  Value q = getQ(), k = getK();
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "gather", getGather())) ||
      failed(verifyQueries(*this, q, "k", k)) ||
      failed(verifySameElementType(*this, "k", k, "q", q)) ||
      failed(verifyStaticDim(*this, "scores", getScores(), 3)))
    return failure();
  int64_t batch = dimOf(q, 0), heads = dimOf(k, 1);
  return verifyShapes(
      *this,
      {{"rows", getRows(), {batch, heads, kAny}, "[B, Hkv, leaves + 1]"},
       {"entries", getEntries(), {batch, heads, kAny}, "[B, Hkv, entries]"},
       {"items", getItems(), {batch, heads, kAny, 2}, "[B, Hkv, items, 2]"},
       {"k_len", getKLen(), {batch}, "[B]"},
       {"scores", getScores(), {batch, heads, kAny, kAny}, "[B, Hkv, NQ, n]"}});
}

LogicalResult AttendEntriesOp::verify() {
  Value q = getQ(), k = getK(), v = getV();
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "gather", getGather())) ||
      failed(verifyQueries(*this, q, "k", k)) ||
      failed(verifySameElementType(*this, "k", k, "q", q)) ||
      failed(verifySameElementType(*this, "v", v, "q", q)) ||
      failed(verifyHeadDim(*this, "v", v)))
    return failure();
  if (getParams().getCausal() && !getQStart())
    return emitOpError("expected 'q_start' in causal attention, but got none");
  int64_t batch = dimOf(q, 0), heads = dimOf(k, 1);
  return verifyShapes(
      *this,
      {{"v", v, {batch, heads, dimOf(k, 2), kAny}, "[B, Hkv, Tk, Dv]"},
       {"rows", getRows(), {batch, heads, kAny}, "[B, Hkv, leaves + 1]"},
       {"entries", getEntries(), {batch, heads, kAny}, "[B, Hkv, entries]"},
       {"items", getItems(), {batch, heads, kAny, 2}, "[B, Hkv, items, 2]"},
       {"k_len", getKLen(), {batch}, "[B]"},
       {"partial",
        getPartial(),
        {batch, heads, kAny, dimOf(v, 3)},
        "[B, Hkv, entries Q G, Dv]"},
       {"partial_lse",
        getPartialLse(),
        {batch, heads, dimOf(getPartial(), 2)},
        "[B, Hkv, entries Q G]"}});
}

LogicalResult MergeEntriesOp::verify() {
  Value partial = getPartial(), o = getO();
  if (failed(verifyDps(*this)) ||
      failed(verifyStaticDim(*this, "lists", getLists(), 3)) ||
      failed(verifyQueries(*this, o, "partial", partial)))
    return failure();
  int64_t batch = dimOf(o, 0), heads = dimOf(partial, 1);
  if (failed(verifyShapes(
          *this,
          {{"lists", getLists(), {batch, heads, kAny, kAny}, "[B, Hkv, NQ, n]"},
           {"partial",
            partial,
            {batch, heads, kAny, dimOf(o, 3)},
            "[B, Hkv, entries Q G, Dv]"},
           {"partial_lse",
            getPartialLse(),
            {batch, heads, dimOf(partial, 2)},
            "[B, Hkv, entries Q G]"}})))
    return failure();
  if (!getLse())
    return success();
  return verifyShape(
      *this,
      {"lse", getLse(), {batch, dimOf(o, 1), dimOf(o, 2)}, "[B, Hq, Tq]"});
}

LogicalResult PrescoreBlocksOp::verify() {
  Value k = getK();
  if (failed(verifyDps(*this)) ||
      failed(verifyQueries(*this, getQ(), "k", k)) ||
      failed(verifyStaticDim(*this, "leaves", getLeaves(), 3)))
    return failure();
  SmallVector<int64_t> list =
      listShape(getParams(), getQ(), k, dimOf(getLeaves(), 3));
  return verifyShapes(*this,
                      {{"k_len", getKLen(), {dimOf(getQ(), 0)}, "[B]"},
                       {"atoms",
                        getAtoms(),
                        {dimOf(k, 0), dimOf(k, 1), kAny,
                         getParams().getLeafAtoms(), dimOf(k, 3)},
                        "[B, Hkv, leaves, A, D]"},
                       {"outlier",
                        getOutlier(),
                        {dimOf(k, 0), dimOf(k, 1), dimOf(getAtoms(), 2)},
                        "[B, Hkv, leaves]"},
                       {"leaves", getLeaves(), list, "[B, Hkv, NQ, n]"},
                       {"scores", getScores(), list, "[B, Hkv, NQ, n]"}});
}

LogicalResult SelectTopkOp::verify() {
  Value nodes = getNodes(), kept = getKept();
  if (failed(verifyDps(*this)) ||
      failed(verifyPosition(*this, getParams(), getQStart())) ||
      failed(verifyStaticDim(*this, "nodes", nodes, 3)) ||
      failed(verifyStaticDim(*this, "kept", kept, 3)))
    return failure();
  int64_t forced = getParams().getForcedCount();
  if (dimOf(kept, 3) < forced)
    return emitOpError() << "expected 'kept' to hold the " << forced
                         << " forced nodes, but got width " << dimOf(kept, 3);
  SmallVector<int64_t> list = llvm::to_vector(shaped(nodes).getShape());
  list.back() = dimOf(kept, 3);
  return verifyShapes(
      *this,
      {{"scores", getScores(), llvm::to_vector(shaped(nodes).getShape()),
        "[B, Hkv, NQ, n]"},
       {"k_len", getKLen(), {list[0]}, "[B]"},
       {"q_start", getQStart(), {list[0]}, "[B]"},
       {"kept", kept, list, "[B, Hkv, NQ, limit]"},
       {"count", getCount(), {list[0], list[1], list[2]}, "[B, Hkv, NQ]"},
       {"kept_scores", getKeptScores(), list, "[B, Hkv, NQ, limit]"}});
}

LogicalResult AttendTilesOp::verify() {
  Value q = getQ(), k = getK(), v = getV();
  if (failed(verifyDps(*this)) || failed(verifyQueries(*this, q, "k", k)) ||
      failed(verifyHeadDim(*this, "v", v)) ||
      failed(verifyPosition(*this, getParams(), getQStart())) ||
      failed(verifySameElementType(*this, "k", k, "q", q)) ||
      failed(verifySameElementType(*this, "v", v, "q", q)) ||
      failed(verifySameElementType(*this, "o", getO(), "q", q)) ||
      failed(verifyStaticDim(*this, "indices", getIndices(), 3)))
    return failure();
  return verifyShapes(*this,
                      {{"v",
                        v,
                        {dimOf(q, 0), dimOf(k, 1), dimOf(k, 2), kAny},
                        "[B, Hkv, Tk, Dv]"},
                       {"indices", getIndices(),
                        listShape(getParams(), q, k, kAny), "[B, Hkv, NQ, K]"},
                       {"k_len", getKLen(), {dimOf(q, 0)}, "[B]"},
                       {"q_start", getQStart(), {dimOf(q, 0)}, "[B]"},
                       {"o",
                        getO(),
                        {dimOf(q, 0), dimOf(q, 1), dimOf(q, 2), dimOf(v, 3)},
                        "[B, Hq, Tq, Dv]"},
                       {"lse",
                        getLse(),
                        {dimOf(q, 0), dimOf(q, 1), dimOf(q, 2)},
                        "[B, Hq, Tq]"}});
}
