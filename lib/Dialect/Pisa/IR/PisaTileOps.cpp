//===- PisaTileOps.cpp - Verifiers of the tile ops --------------*- C++ -*-===//
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

/// A task belongs to one sequence and one kv head.
static LogicalResult verifyTask(Operation *op, StringRef name, Value value) {
  return verifyShape(op, {name, value, {1, 1}, "of one task"});
}

/// Whether rows and columns are 16-bit operands of matrix products, whose head
/// dimension is rounded up.
static bool isMatrixOperand(Value packed) {
  return !shaped(packed).getElementType().isF32();
}

/// [D, Cols] columns, [Cols] bias. Operands of matrix products may have D
/// rounded up, and several parts.
static LogicalResult verifyColumns(Operation *op, Value columns, Value bias,
                                   int64_t headDim, int64_t leastColumns) {
  if (failed(verifyStaticDim(op, "columns", columns, 0)) ||
      failed(verifyStaticDim(op, "columns", columns, 1)))
    return failure();
  int64_t depth = isMatrixOperand(columns) ? kAny : headDim;
  if (isMatrixOperand(columns) && dimOf(columns, 0) < headDim)
    return op->emitOpError()
           << "expected 'columns' to hold at least " << headDim
           << " rows, but got " << dimOf(columns, 0);
  if (failed(verifyShapes(op, {{"columns", columns, {depth, kAny}, "[D, Cols]"},
                               {"bias", bias, {dimOf(columns, 1)}, "[Cols]"}})))
    return failure();
  if (dimOf(columns, 1) >= leastColumns)
    return success();
  return op->emitOpError() << "expected at least " << leastColumns
                           << " columns, one for each row of a block, but got "
                           << dimOf(columns, 1);
}

/// Scores of matrix products are scaled after the product, others before it.
static LogicalResult verifyScale(Operation *op, Value queries, Value scale) {
  if (isMatrixOperand(queries) == static_cast<bool>(scale))
    return success();
  if (scale)
    return op->emitOpError("expected no 'scale' with float32 'queries', which "
                           "are scaled when they are packed, but got one");
  return op->emitOpError("expected a 'scale' with 16-bit 'queries', but got "
                         "none");
}

LogicalResult PackQueriesOp::verify() {
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "query_block", getQueryBlock())) ||
      failed(verifyHeadDim(*this, "q", getQ())) ||
      failed(verifyStaticDim(*this, "q", getQ(), 1)) ||
      failed(verifyStaticDim(*this, "packed", getPacked(), 1)) ||
      failed(verifyHeadDim(*this, "packed", getPacked())))
    return failure();
  int64_t rows = getQueryBlock() * dimOf(getQ(), 1);
  if (dimOf(getPacked(), 1) < rows)
    return emitOpError() << "expected 'packed' to hold the " << rows
                         << " rows of a query block, but got "
                         << dimOf(getPacked(), 1);
  return verifyShapes(*this,
                      {{"q", getQ(), {1}, "of one sequence"},
                       {"packed",
                        getPacked(),
                        {ceilDivDim(dimOf(getQ(), 2), getQueryBlock()), kAny,
                         isMatrixOperand(getPacked()) ? dimOf(getPacked(), 2)
                                                      : dimOf(getQ(), 3)},
                        "[nq, M, D]"}});
}

LogicalResult PackColumnsOp::verify() {
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "group", getGroup())) ||
      failed(verifyPositive(*this, "nodes", getNodes())) ||
      failed(verifyHeadDim(*this, "source", getSource())) ||
      failed(verifyTask(*this, "source", getSource())))
    return failure();
  return verifyColumns(*this, getColumns(), getBias(), dimOf(getSource(), 3),
                       getGroup() * getNodes());
}

LogicalResult PackAtomsOp::verify() {
  Value k = getK(), atoms = getAtoms();
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "nodes", getNodes())) ||
      failed(verifyPositive(*this, "block_size", getBlockSize())) ||
      failed(verifyHeadDim(*this, "k", k)) ||
      failed(verifyTask(*this, "k", k)) ||
      failed(verifyStaticDim(*this, "atoms", atoms, 3)) ||
      failed(verifyShapes(*this, {{"atoms",
                                   atoms,
                                   {1, 1, kAny, kAny, dimOf(k, 3)},
                                   "[1, 1, leaves, A, D]"},
                                  {"outlier",
                                   getOutlier(),
                                   {1, 1, dimOf(atoms, 2)},
                                   "[1, 1, leaves]"}})))
    return failure();
  if (getBlockSize() % dimOf(atoms, 3) != 0)
    return emitOpError()
           << "expected the number of atoms to divide 'block_size' = "
           << getBlockSize() << ", but got " << dimOf(atoms, 3);
  return verifyColumns(*this, getColumns(), getBias(), dimOf(k, 3),
                       (dimOf(atoms, 3) + 1) * getNodes());
}

LogicalResult PackValuesOp::verify() {
  if (failed(verifyDps(*this)) || failed(verifyHeadDim(*this, "v", getV())) ||
      failed(verifyHeadDim(*this, "packed", getPacked())) ||
      failed(verifyTask(*this, "v", getV())) ||
      failed(verifyStaticDim(*this, "packed", getPacked(), 0)))
    return failure();
  return verifyShape(
      *this, {"packed",
              getPacked(),
              {kAny, isMatrixOperand(getPacked()) ? dimOf(getPacked(), 1)
                                                  : dimOf(getV(), 3)},
              "[C, Dv]"});
}

LogicalResult NextBlockOp::verify() {
  if (failed(verifyPositive(*this, "divisor", getDivisor())))
    return failure();
  return verifyStaticDim(*this, "lists", getLists(), 3);
}

LogicalResult ExpandNodesOp::verify() {
  Value nodes = getNodes();
  if (failed(verifyDps(*this)) || failed(verifyTask(*this, "nodes", nodes)) ||
      failed(verifyStaticDim(*this, "nodes", nodes, 3)))
    return failure();
  if (getParams().getCausal() && !getQStart())
    return emitOpError("expected 'q_start' in causal attention, but got none");
  return verifyShape(*this, {"children",
                             getChildren(),
                             {1, 1, dimOf(nodes, 2),
                              dimOf(nodes, 3) * getParams().getFanout()},
                             "[1, 1, nq, g n]"});
}

LogicalResult UnionNodesOp::verify() {
  Value lists = getLists();
  if (failed(verifyDps(*this)) || failed(verifyTask(*this, "lists", lists)) ||
      failed(verifyStaticDim(*this, "lists", lists, 3)) ||
      failed(verifyStaticDim(*this, "nodes", getNodes(), 0)))
    return failure();
  return verifyShapes(
      *this, {{"count", getCount(), {1}, "of one number"},
              {"places", getPlaces(), llvm::to_vector(shaped(lists).getShape()),
               "[1, 1, nq, n]"}});
}

LogicalResult ScoreBlockOp::verify() {
  Value queries = getQueries(), lists = getLists();
  if (failed(verifyDps(*this)) ||
      failed(verifyScale(*this, queries, getScale())) ||
      failed(verifyPositive(*this, "query_block", getQueryBlock())) ||
      failed(verifyPositive(*this, "heads", getHeads())) ||
      failed(verifyPositive(*this, "group", getGroup())) ||
      failed(verifyPositive(*this, "nodes", getNodes())) ||
      failed(verifyPositive(*this, "row_tile", getRowTile())) ||
      failed(verifyPositive(*this, "column_tile", getColumnTile())) ||
      failed(verifyStaticDim(*this, "queries", queries, 1)) ||
      failed(verifyStaticDim(*this, "queries", queries, 2)) ||
      failed(verifyStaticDim(*this, "lists", lists, 3)) ||
      failed(verifyTask(*this, "lists", lists)))
    return failure();
  if (dimOf(queries, 1) % getRowTile() != 0)
    return emitOpError() << "expected 'row_tile' to divide the "
                         << dimOf(queries, 1) << " rows of 'queries', but got "
                         << getRowTile();
  if (failed(verifyShape(*this, {"scores", getScores(),
                                 llvm::to_vector(shaped(lists).getShape()),
                                 "[1, 1, nq, n]"})))
    return failure();
  return verifyColumns(*this, getColumns(), getBias(), dimOf(queries, 2),
                       getGroup() * getNodes());
}

LogicalResult AttendBlockOp::verify() {
  Value queries = getQueries(), acc = getAcc();
  int64_t nq = dimOf(queries, 0), rows = dimOf(queries, 1);
  if (failed(verifyDps(*this)) ||
      failed(verifyScale(*this, queries, getScale())) ||
      failed(verifyPositive(*this, "heads", getHeads())) ||
      failed(verifyPositive(*this, "row_tile", getRowTile())) ||
      failed(verifyPositive(*this, "column_tile", getColumnTile())) ||
      failed(verifyStaticDim(*this, "queries", queries, 1)) ||
      failed(verifyStaticDim(*this, "queries", queries, 2)) ||
      failed(verifyStaticDim(*this, "lists", getLists(), 3)) ||
      failed(verifyTask(*this, "lists", getLists())) ||
      failed(verifyHeadDim(*this, "values", getValues())) ||
      failed(verifyHeadDim(*this, "acc", acc)))
    return failure();
  if (rows % getRowTile() != 0)
    return emitOpError() << "expected 'row_tile' to divide the " << rows
                         << " rows of 'queries', but got " << getRowTile();
  if (getParams().getCausal() && !getQStart())
    return emitOpError("expected 'q_start' in causal attention, but got none");
  int64_t blockSize = getParams().getBlockSize();
  if (failed(verifyStaticDim(*this, "values", getValues(), 0)))
    return failure();
  if (int64_t keys = getNumKeys(); keys < 1 || blockSize % keys != 0)
    return emitOpError() << "expected the rows of 'values' to divide C = "
                         << blockSize << ", but got " << keys;
  if (int64_t parts = blockSize / getNumKeys();
      getPart() < 0 || static_cast<int64_t>(getPart()) >= parts)
    return emitOpError() << "expected 'part' to be one of " << parts
                         << ", but got " << static_cast<int64_t>(getPart());
  if (failed(verifyShapes(
          *this,
          {{"acc", acc, {nq, rows, dimOf(getValues(), 1)}, "[nq, M, Dv]"},
           {"max", getMax(), {nq, rows}, "[nq, M]"},
           {"sum", getSum(), {nq, rows}, "[nq, M]"}})))
    return failure();
  return verifyColumns(*this, getColumns(), getBias(), dimOf(queries, 2),
                       getNumKeys());
}

LogicalResult FinishAttentionOp::verify() {
  Value acc = getAcc(), o = getO();
  if (failed(verifyDps(*this)) ||
      failed(verifyPositive(*this, "query_block", getQueryBlock())) ||
      failed(verifyHeadDim(*this, "o", o)) ||
      failed(verifyHeadDim(*this, "acc", acc)) ||
      failed(verifyStaticDim(*this, "o", o, 1)))
    return failure();
  if (dimOf(acc, 2) < dimOf(o, 3))
    return emitOpError() << "expected 'acc' to hold the " << dimOf(o, 3)
                         << " columns of 'o', but got " << dimOf(acc, 2);
  return verifyShapes(
      *this, {{"acc",
               acc,
               {ceilDivDim(dimOf(o, 2), getQueryBlock()), kAny, kAny},
               "[nq, M, Dv]"},
              {"max", getMax(), {dimOf(acc, 0), dimOf(acc, 1)}, "[nq, M]"},
              {"sum", getSum(), {dimOf(acc, 0), dimOf(acc, 1)}, "[nq, M]"},
              {"o", o, {1}, "of one sequence"},
              {"lse", getLse(), {1, dimOf(o, 1), dimOf(o, 2)}, "[1, G, T]"}});
}
