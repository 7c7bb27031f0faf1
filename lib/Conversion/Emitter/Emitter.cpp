//===- Emitter.cpp - Short names for the IR of tile ops ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

SmallVector<Piece> pisa::getPieces(int64_t size, int64_t width) {
  SmallVector<Piece> pieces;
  for (int64_t offset = 0; offset < size; offset += width)
    pieces.push_back({offset, std::min(width, size - offset)});
  return pieces;
}

//===----------------------------------------------------------------------===//
// Constants and integers
//===----------------------------------------------------------------------===//

Value Emitter::idx(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}
Value Emitter::i32(int32_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value Emitter::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value Emitter::splat(float value, int64_t width) {
  auto type = VectorType::get({width}, getF32Type());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, value));
}
Value Emitter::splatI32(int32_t value, int64_t width) {
  auto type = VectorType::get({width}, getI32Type());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, value));
}
float Emitter::negInf() const {
  return -std::numeric_limits<float>::infinity();
}

Value Emitter::add(Value x, Value y) {
  return arith::AddIOp::create(*this, x, y);
}
Value Emitter::sub(Value x, Value y) {
  return arith::SubIOp::create(*this, x, y);
}
Value Emitter::mul(Value x, Value y) {
  return arith::MulIOp::create(*this, x, y);
}
Value Emitter::min(Value x, Value y) {
  return arith::MinSIOp::create(*this, x, y);
}
Value Emitter::max(Value x, Value y) {
  return arith::MaxSIOp::create(*this, x, y);
}
Value Emitter::div(Value x, int64_t y) {
  return y == 1 ? x : Value(arith::DivUIOp::create(*this, x, idx(y)));
}
Value Emitter::rem(Value x, int64_t y) {
  return y == 1 ? idx(0) : Value(arith::RemUIOp::create(*this, x, idx(y)));
}
Value Emitter::cmp(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(*this, predicate, x, y);
}
Value Emitter::both(Value x, Value y) {
  return arith::AndIOp::create(*this, x, y);
}
Value Emitter::toIndex(Value value) {
  return arith::IndexCastOp::create(*this, getIndexType(), value);
}
Value Emitter::toI32(Value value) {
  return arith::IndexCastOp::create(*this, getI32Type(), value);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Emitter::loop(Value begin, Value end, int64_t step,
                   function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, idx(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

SmallVector<Value>
Emitter::loop(Value begin, Value end, int64_t step, ValueRange inits,
              function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, idx(step), inits);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void Emitter::when(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

void Emitter::when(Value condition, function_ref<void()> body,
                   function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
  setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

SmallVector<Value>
Emitter::choose(Value condition, TypeRange types,
                function_ref<SmallVector<Value>()> body,
                function_ref<SmallVector<Value>()> otherwise) {
  auto branch =
      scf::IfOp::create(*this, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(*this, body());
  setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(*this, otherwise());
  return llvm::to_vector_of<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::dim(Value memref, int64_t i) {
  return memref::DimOp::create(*this, memref, i);
}
Value Emitter::load(Value memref, ValueRange indices) {
  return memref::LoadOp::create(*this, memref, indices);
}
void Emitter::store(Value value, Value memref, ValueRange indices) {
  memref::StoreOp::create(*this, value, memref, indices);
}
Value Emitter::loadVector(Value memref, ValueRange indices, int64_t width) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return vector::LoadOp::create(*this, VectorType::get({width}, element),
                                memref, indices);
}
void Emitter::storeVector(Value vector, Value memref, ValueRange indices) {
  vector::StoreOp::create(*this, vector, memref, indices);
}
Value Emitter::loadF32(Value memref, ValueRange indices, int64_t width) {
  Value vector = loadVector(memref, indices, width);
  if (getElementTypeOrSelf(vector).isF32())
    return vector;
  return arith::ExtFOp::create(*this, VectorType::get({width}, getF32Type()),
                               vector);
}
void Emitter::storeF32(Value vector, Value memref, ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (!element.isF32())
    vector = arith::TruncFOp::create(
        *this, cast<VectorType>(vector.getType()).clone(element), vector);
  storeVector(vector, memref, indices);
}
Value Emitter::scratch(ArrayRef<int64_t> shape, Type elementType) {
  // At the head of the task: an alloca inside a loop would grow the stack.
  OpBuilder::InsertionGuard guard(*this);
  if (auto task = op->getParentOfType<scf::ForallOp>())
    setInsertionPointToStart(task.getBody());
  else
    setInsertionPointToStart(
        &op->getParentOfType<FunctionOpInterface>().getFunctionBody().front());
  return memref::AllocaOp::create(*this, MemRefType::get(shape, elementType),
                                  getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// Float32
//===----------------------------------------------------------------------===//

Value Emitter::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      *this, VectorType::get({width}, scalar.getType()), scalar);
}
Value Emitter::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(*this, x, y, z);
}
Value Emitter::exp2(Value x) { return math::Exp2Op::create(*this, x); }
Value Emitter::log2(Value x) { return math::Log2Op::create(*this, x); }
Value Emitter::reduceMax(Value vector) {
  return vector::ReductionOp::create(*this, vector::CombiningKind::MAXIMUMF,
                                     vector);
}
Value Emitter::reduceAdd(Value vector) {
  // Without `reassoc` the lanes would be added one after the other.
  return vector::ReductionOp::create(*this, vector::CombiningKind::ADD, vector,
                                     arith::FastMathFlags::reassoc);
}
Value Emitter::isFinite(Value x) { return math::IsFiniteOp::create(*this, x); }
Value Emitter::iota(int64_t width) {
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, width));
  auto type = VectorType::get({width}, getI32Type());
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(type, ArrayRef<int32_t>(lanes)));
}

Value Emitter::anyEntry(Value lists, Value row, int64_t divisor, Value block) {
  int64_t n = cast<MemRefType>(lists.getType()).getDimSize(3);
  Value wanted = toI32(block);
  auto anyIn = [&](Value offset, int64_t width, Value found) -> Value {
    Value entries = loadVector(lists, {idx(0), idx(0), row, offset}, width);
    Value key = entries;
    // -1 / divisor would be 0: padding must not look like block 0. As an
    // unsigned number it is larger than any entry.
    if (divisor > 1)
      key = arith::DivUIOp::create(*this, entries, splatI32(divisor, width));
    Value equal = cmp(arith::CmpIPredicate::eq, key, broadcast(wanted, width));
    Value any =
        vector::ReductionOp::create(*this, vector::CombiningKind::OR, equal);
    return arith::OrIOp::create(*this, found, any);
  };
  constexpr int64_t lanes = 16;
  int64_t whole = n / lanes * lanes;
  Value found = arith::ConstantOp::create(*this, getBoolAttr(false));
  if (whole > 0)
    found = loop(idx(0), idx(whole), lanes, found,
                 [&](Value offset, ValueRange carried) -> SmallVector<Value> {
                   return {anyIn(offset, lanes, carried[0])};
                 })[0];
  if (whole < n)
    found = anyIn(idx(whole), n - whole, found);
  return found;
}

//===----------------------------------------------------------------------===//
// Shared pieces
//===----------------------------------------------------------------------===//

bool pisa::isOneTask(Value value) {
  auto shape = cast<MemRefType>(value.getType()).getShape();
  return shape[0] == 1 && shape[1] == 1;
}

Positions Positions::get(Emitter &e, ParamsAttr params, Value kLen,
                         Value qStart, Value queryOffset, Value queryLength) {
  Positions p;
  p.params = params;
  p.kLen = e.toIndex(e.load(kLen, e.idx(0)));
  if (qStart)
    p.start = e.add(e.toIndex(e.load(qStart, e.idx(0))), queryOffset);
  if (queryLength)
    p.length = e.sub(queryLength, queryOffset);
  return p;
}

std::pair<Value, Value> Positions::ofBlock(Emitter &e, Value j) const {
  int64_t queryBlock = params.getQueryBlock();
  Value firstQuery = e.mul(j, e.idx(queryBlock));
  Value lastQuery = e.add(firstQuery, e.idx(queryBlock - 1));
  if (length)
    lastQuery = e.min(lastQuery, e.sub(length, e.idx(1)));
  return {e.add(start, firstQuery), e.add(start, lastQuery)};
}

Value pisa::isForced(Emitter &e, const Positions &positions, Value node,
                     Value span, Value j) {
  ParamsAttr params = positions.params;
  if (!positions.start)
    return arith::ConstantOp::create(e, e.getBoolAttr(false));
  auto [first, last] = positions.ofBlock(e, j);
  Value zero = e.idx(0), one = e.idx(1);
  int64_t blockSize = params.getBlockSize();
  // Rounded down: a position below 0 stands before every leaf and forces
  // none.
  auto leafOf = [&](Value position) -> Value {
    return arith::FloorDivSIOp::create(e, position, e.idx(blockSize));
  };
  Value firstLeaf = leafOf(first), lastLeaf = leafOf(last);
  Value numLeaves =
      arith::CeilDivSIOp::create(e, positions.kLen, e.idx(blockSize));
  Value begin = e.mul(node, span);
  Value end = e.add(begin, span);
  Value sinkEnd = e.min(e.idx(params.getSinkBlocks()),
                        e.min(e.add(lastLeaf, one), numLeaves));
  Value forced = e.cmp(arith::CmpIPredicate::slt, begin, sinkEnd);
  if (params.getLocalBlocks() == 0)
    return forced;
  Value localBegin =
      e.max(e.sub(firstLeaf, e.idx(params.getLocalBlocks() - 1)), zero);
  Value localEnd = e.min(e.add(lastLeaf, one), numLeaves);
  Value local = e.both(e.cmp(arith::CmpIPredicate::slt, begin, localEnd),
                       e.cmp(arith::CmpIPredicate::sgt, end, localBegin));
  local = e.both(local, e.cmp(arith::CmpIPredicate::slt, localBegin, localEnd));
  return arith::OrIOp::create(e, forced, local);
}

Value pisa::orderedKey(Emitter &e, Value score) {
  constexpr int32_t nan = kPaddingKey + 1;
  // x + 0 turns -0 into +0.
  Value x = arith::AddFOp::create(e, score, e.f32(0));
  Value bits = arith::BitcastOp::create(e, e.getI32Type(), x);
  Value sign = arith::ShRSIOp::create(e, bits, e.i32(31));
  Value flip = arith::AndIOp::create(e, sign, e.i32(0x7fffffff));
  Value key = arith::XOrIOp::create(e, bits, flip);
  Value isNaN =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, score, score);
  return arith::SelectOp::create(e, isNaN, e.i32(nan), key);
}

void pisa::emitScores(Emitter &e, Value queries, Value j, Value row0,
                      int64_t rowTile, int64_t columnTile, Value columns,
                      Value bias, Value out) {
  auto type = cast<MemRefType>(columns.getType());
  int64_t headDim = type.getDimSize(0), numColumns = type.getDimSize(1);

  auto tile = [&](Value column, int64_t width) {
    Value start = e.loadVector(bias, column, width);
    SmallVector<Value> acc(rowTile, start);
    acc =
        e.loop(e.idx(0), e.idx(headDim), 1, acc, [&](Value d, ValueRange acc) {
          Value keys = e.loadVector(columns, {d, column}, width);
          SmallVector<Value> next;
          for (int64_t r = 0; r < rowTile; ++r) {
            Value q = e.load(queries, {j, e.add(row0, e.idx(r)), d});
            next.push_back(e.fma(e.broadcast(q, width), keys, acc[r]));
          }
          return next;
        });
    for (int64_t r = 0; r < rowTile; ++r)
      e.storeVector(acc[r], out, {e.idx(r), column});
  };
  int64_t whole = numColumns / columnTile * columnTile;
  if (whole > 0)
    e.loop(e.idx(0), e.idx(whole), columnTile,
           [&](Value column) { tile(column, columnTile); });
  if (whole < numColumns)
    tile(e.idx(whole), numColumns - whole);
}
