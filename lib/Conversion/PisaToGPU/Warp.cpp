//===- Warp.cpp - Short names for the code of a GPU task -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

//===----------------------------------------------------------------------===//
// Who and where
//===----------------------------------------------------------------------===//

Value WarpEmitter::thread() {
  return gpu::ThreadIdOp::create(*this, gpu::Dimension::x);
}
Value WarpEmitter::lane() { return rem(thread(), kWarpSize); }
Value WarpEmitter::warp() { return div(thread(), kWarpSize); }
void WarpEmitter::barrier() {
  // bar.sync counts a warp when its first lanes arrive: lanes that left a loop
  // at different times must have met before.
  syncWarp();
  gpu::BarrierOp::create(*this);
}
void WarpEmitter::syncWarp() { NVVM::SyncWarpOp::create(*this, i32(-1)); }

bool WarpEmitter::divides(Value count, int64_t step) {
  APInt known;
  return matchPattern(count, m_ConstantInt(&known)) &&
         known.getSExtValue() % step == 0;
}
void WarpEmitter::share(Value who, Value count, int64_t step,
                        function_ref<void(Value)> body) {
  if (divides(count, step))
    return loop(who, count, step, body);
  loop(idx(0), count, step, [&](Value base) {
    Value i = add(base, who);
    when(cmp(arith::CmpIPredicate::slt, i, count), [&] { body(i); });
  });
}
void WarpEmitter::forEachThread(Value count, function_ref<void(Value)> body) {
  share(thread(), count, numThreads(), body);
}
void WarpEmitter::forEachLane(Value count, function_ref<void(Value)> body) {
  share(lane(), count, kWarpSize, body);
}
SmallVector<Value> WarpEmitter::forEachLane(
    Value count, ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (divides(count, kWarpSize))
    return loop(lane(), count, kWarpSize, inits, body);
  return loop(idx(0), count, kWarpSize, inits,
              [&](Value base, ValueRange carried) -> SmallVector<Value> {
                Value i = add(base, lane());
                return choose(
                    cmp(arith::CmpIPredicate::slt, i, count), inits.getTypes(),
                    [&] { return body(i, carried); },
                    [&] { return llvm::to_vector(carried); });
              });
}
void WarpEmitter::forEachWarp(Value count, function_ref<void(Value)> body) {
  loop(warp(), count, task.numWarps, body);
}
void WarpEmitter::forEachRowTile(int64_t rows,
                                 function_ref<void(Value, Value)> body) {
  int64_t tiles = rows / kRows;
  int64_t places = llvm::divideCeil(tiles, task.numWarps);
  Value first = warp();
  auto guarded = [&](Value place, Value tile, bool whole) {
    if (whole)
      return body(place, tile);
    when(cmp(arith::CmpIPredicate::slt, tile, idx(tiles)),
         [&] { body(place, tile); });
  };
  bool whole = tiles % task.numWarps == 0;
  if (places == 1)
    return guarded(idx(0), first, whole);
  loop(idx(0), idx(places), 1, [&](Value place) {
    guarded(place, add(first, mul(place, idx(task.numWarps))), whole);
  });
}

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

Value WarpEmitter::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI32Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}
Value WarpEmitter::countOnes(Value bits) {
  return math::CtPopOp::create(*this, bits);
}
Value WarpEmitter::lanesBelow() {
  Value bit = arith::ShLIOp::create(*this, i32(1), toI32(lane()));
  return sub(bit, i32(1));
}
Value WarpEmitter::minOfWarp(Value value) {
  return NVVM::ReduxOp::create(*this, getI32Type(), value, NVVM::ReduxKind::MIN,
                               i32(-1));
}
Value WarpEmitter::orOfWarp(Value value) {
  return NVVM::ReduxOp::create(*this, getI32Type(), value, NVVM::ReduxKind::OR,
                               i32(-1));
}

Value WarpEmitter::scan(Value value) {
  Value place = lane();
  for (int32_t step = 1; step < kWarpSize; step *= 2) {
    Value other = gpu::ShuffleOp::create(*this, value, step, kWarpSize,
                                         gpu::ShuffleMode::UP)
                      .getShuffleResult();
    Value has = cmp(arith::CmpIPredicate::sge, place, idx(step));
    value = arith::SelectOp::create(*this, has, add(value, other), value);
  }
  return value;
}
Value WarpEmitter::fromLane(Value value, Value lane) {
  return gpu::ShuffleOp::create(*this, value, toI32(lane), i32(kWarpSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value WarpEmitter::rowsOf(Value buffer) {
  Value storage = getStorage(buffer);
  if (cast<MemRefType>(storage.getType()).getRank() == 2)
    return storage;
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  return memref::CollapseShapeOp::create(*this, storage, groups);
}

Value WarpEmitter::scratchView(ArrayRef<int64_t> shape, Type type,
                               int64_t skip) {
  auto space = gpu::AddressSpaceAttr::get(
      getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  Value arena = gpu::DynamicSharedMemoryOp::create(
      *this, MemRefType::get({ShapedType::kDynamic}, getI8Type(),
                             MemRefLayoutAttrInterface(), space));
  int64_t offset = op->getAttrOfType<IntegerAttr>(kScratchAttr).getInt();
  return memref::ViewOp::create(
      *this, MemRefType::get(shape, type, MemRefLayoutAttrInterface(), space),
      arena, idx(offset + skip), ValueRange{});
}

Value WarpEmitter::loadAsF32(Value source, ValueRange indices) {
  Value x = load(source, indices);
  if (x.getType().isF32())
    return x;
  return arith::ExtFOp::create(*this, getF32Type(), x);
}

Value WarpEmitter::isAligned(Value source) {
  auto type = cast<MemRefType>(source.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  auto metadata = memref::ExtractStridedMetadataOp::create(*this, source);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(*this, source);
  Value bits = add(base, mul(metadata.getOffset(), idx(bytes)));
  for (auto [i, stride] : llvm::enumerate(metadata.getStrides().drop_back()))
    if (type.getDimSize(i) != 1)
      bits = arith::OrIOp::create(*this, bits, mul(stride, idx(bytes)));
  Value rest = arith::AndIOp::create(*this, bits, idx(15));
  return cmp(arith::CmpIPredicate::eq, rest, idx(0));
}

void WarpEmitter::copyChunk(Value aligned, Value present, Value source,
                            ValueRange sourceIndices, Value target,
                            ValueRange targetIndices) {
  Type type = cast<MemRefType>(target.getType()).getElementType();
  // Indices of what is absent may lie anywhere: the first element is safe to
  // name, and nothing of it is read.
  SmallVector<Value> safe;
  for (Value index : sourceIndices)
    safe.push_back(arith::SelectOp::create(*this, present, index, idx(0)));
  when(
      aligned,
      [&] { copyAlignedChunk(present, source, safe, target, targetIndices); },
      [&] {
        loop(idx(0), idx(kChunk), 1, [&](Value i) {
          Value zero =
              arith::ConstantOp::create(*this, getFloatAttr(type, 0.0));
          Value x = choose(
              present, type,
              [&] {
                SmallVector<Value> at = safe;
                at.back() = add(at.back(), i);
                return SmallVector<Value>{load(source, at)};
              },
              [&] { return SmallVector<Value>{zero}; })[0];
          SmallVector<Value> at = llvm::to_vector(targetIndices);
          at.back() = add(at.back(), i);
          store(x, target, at);
        });
      });
}

void WarpEmitter::copyAlignedChunk(Value present, Value source,
                                   ValueRange sourceIndices, Value target,
                                   ValueRange targetIndices) {
  Value count = arith::SelectOp::create(*this, present, idx(kChunk), idx(0));
  nvgpu::DeviceAsyncCopyOp::create(
      *this, nvgpu::DeviceAsyncTokenType::get(getContext()), target,
      targetIndices, source, sourceIndices, getIndexAttr(kChunk), count,
      /*bypassL1=*/getUnitAttr());
}

void WarpEmitter::copyWholeChunk(Value source, ValueRange sourceIndices,
                                 Value target, ValueRange targetIndices) {
  nvgpu::DeviceAsyncCopyOp::create(
      *this, nvgpu::DeviceAsyncTokenType::get(getContext()), target,
      targetIndices, source, sourceIndices, getIndexAttr(kChunk),
      /*srcElements=*/Value(), /*bypassL1=*/getUnitAttr());
}

bool WarpEmitter::copyWholeRows(Value source, Value firstRow, int64_t rows,
                                int64_t headDim, Value target,
                                function_ref<Value(Value)> place) {
  int64_t chunks = headDim / kChunk;
  if (headDim % kChunk != 0 || numThreads() % chunks != 0)
    return false;
  int64_t rowsAtOnce = numThreads() / chunks;
  Value row0 = div(thread(), chunks);
  Value depth = mul(rem(thread(), chunks), idx(kChunk));
  auto copy = [&](Value row) {
    copyWholeChunk(source, {idx(0), idx(0), add(firstRow, row), depth}, target,
                   {place(row), depth});
  };
  for (int64_t i = 0; i < rows; i += rowsAtOnce) {
    Value row = add(row0, idx(i));
    if (i + rowsAtOnce <= rows)
      copy(row);
    else
      when(cmp(arith::CmpIPredicate::slt, row, idx(rows)), [&] { copy(row); });
  }
  return true;
}

void WarpEmitter::copyRows(Value source, Value firstRow, Value end,
                           int64_t rows, int64_t depth, Value target) {
  int64_t headDim = staticDim(source, 3), chunks = depth / kChunk;
  Value aligned = isAligned(source);
  auto anyRows = [&] {
    forEachThread(idx(rows * chunks), [&](Value i) {
      Value r = div(i, chunks);
      Value d = mul(rem(i, chunks), idx(kChunk));
      Value row = add(firstRow, r);
      Value present = both(cmp(arith::CmpIPredicate::slt, row, end),
                           cmp(arith::CmpIPredicate::slt, d, idx(headDim)));
      copyChunk(aligned, present, source, {idx(0), idx(0), row, d}, target,
                {r, d});
    });
  };
  if (depth != headDim || numThreads() % chunks != 0)
    return anyRows();
  Value complete =
      cmp(arith::CmpIPredicate::sle, add(firstRow, idx(rows)), end);
  when(
      both(complete, aligned),
      [&] {
        copyWholeRows(source, firstRow, rows, headDim, target,
                      [](Value r) { return r; });
      },
      anyRows);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

VectorType WarpEmitter::fragmentType(int64_t columns, Type type) {
  return VectorType::get({kRows, columns}, type ? type : getF32Type());
}
Value WarpEmitter::constantFragment(float value, int64_t columns) {
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(fragmentType(columns), value));
}
Value WarpEmitter::spread(Value scalar, int64_t columns) {
  return vector::BroadcastOp::create(
      *this, fragmentType(columns, scalar.getType()), scalar);
}
Value WarpEmitter::spreadTo(Value vector, int64_t columns) {
  Type type = fragmentType(columns, getElementTypeOrSelf(vector));
  return vector.getType() == type
             ? vector
             : Value(vector::BroadcastOp::create(*this, type, vector));
}
Value WarpEmitter::rowNumbers() {
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, kRows));
  auto type = VectorType::get({kRows, 1}, getI32Type());
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
}
Value WarpEmitter::columnNumbers(int64_t n, int64_t first) {
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(first, first + n));
  auto type = VectorType::get({1, n}, getI32Type());
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
}
Value WarpEmitter::loadFragment(Value memref, ValueRange indices, int64_t rows,
                                int64_t columns) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return vector::LoadOp::create(
      *this, VectorType::get({rows, columns}, element), memref, indices);
}
Value WarpEmitter::multiply(Value a, Value b, Value acc, bool transposed) {
  AffineExpr m, n, k;
  bindDims(getContext(), m, n, k);
  auto maps = AffineMap::inferFromExprList(
      {ArrayRef<AffineExpr>{m, k},
       transposed ? ArrayRef<AffineExpr>{n, k} : ArrayRef<AffineExpr>{k, n},
       ArrayRef<AffineExpr>{m, n}},
      getContext());
  auto parallel = vector::IteratorTypeAttr::get(getContext(),
                                                vector::IteratorType::parallel);
  auto reduction = vector::IteratorTypeAttr::get(
      getContext(), vector::IteratorType::reduction);
  return vector::ContractionOp::create(
      *this, a, b, acc, getAffineMapArrayAttr(maps),
      getArrayAttr({parallel, parallel, reduction}));
}
Value WarpEmitter::rowMax(Value fragment) {
  Value init = constantFragment(negInf(), 1);
  Value rows = vector::ShapeCastOp::create(
      *this, VectorType::get({kRows}, getF32Type()), init);
  Value result = vector::MultiDimReductionOp::create(
      *this, fragment, rows, ArrayRef<bool>{false, true},
      vector::CombiningKind::MAXIMUMF);
  return vector::ShapeCastOp::create(*this, fragmentType(1), result);
}
Value WarpEmitter::rowSum(Value fragment) {
  Value init = constantFragment(0, 1);
  Value rows = vector::ShapeCastOp::create(
      *this, VectorType::get({kRows}, getF32Type()), init);
  Value result = vector::MultiDimReductionOp::create(
      *this, fragment, rows, ArrayRef<bool>{false, true},
      vector::CombiningKind::ADD);
  return vector::ShapeCastOp::create(*this, fragmentType(1), result);
}

//===----------------------------------------------------------------------===//
// Rows and lists
//===----------------------------------------------------------------------===//

RowLayout RowLayout::get(WarpEmitter &e, Value queries, int64_t queryBlock,
                         int64_t heads) {
  Value storage = getStorage(queries);
  auto type = cast<MemRefType>(storage.getType());
  return {type.getDimSize(1), queryBlock, heads,
          type.getDimSize(0) * type.getDimSize(1)};
}

Value RowLayout::firstBlock(WarpEmitter &e, Value tile) const {
  return e.div(e.mul(tile, e.idx(kRows)), rowsPerBlock);
}

std::pair<Value, Value> RowLayout::blockAndRow(WarpEmitter &e,
                                               Value tile) const {
  Value row = e.rowNumbers();
  auto column = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        e, DenseElementsAttr::get(cast<VectorType>(row.getType()), value));
  };
  if (rowsPerBlock < kRows) {
    Value block = arith::DivUIOp::create(e, row, column(rowsPerBlock));
    Value inner = arith::RemUIOp::create(e, row, column(rowsPerBlock));
    return {block, inner};
  }
  Value base = e.rem(e.mul(tile, e.idx(kRows)), rowsPerBlock);
  return {column(0), e.add(row, e.spread(e.toI32(base), 1))};
}

Value pisa::emitListedMask(WarpEmitter &e, Value lists, Value first,
                           int64_t count, int64_t divisor, Value block) {
  int64_t n = e.staticDim(lists, 3);
  Value zero = e.idx(0);
  Value wanted = e.toI32(block);
  Value numBlocks = e.dim(lists, 2);
  Value none = e.i32(0);
  Value bits = e.forEachLane(
      e.idx(count * n), none,
      [&](Value i, ValueRange carried) -> SmallVector<Value> {
        Value j = e.div(i, n);
        Value row = e.add(first, j);
        // Lists past the last are storage too, whatever it holds.
        Value exists = e.cmp(arith::CmpIPredicate::slt, row, numBlocks);
        Value safe = arith::SelectOp::create(e, exists, row, zero);
        Value entry = e.load(lists, {zero, zero, safe, e.rem(i, n)});
        // Padding is larger than any block as an unsigned number.
        Value key = entry;
        if (divisor > 1)
          key = arith::DivUIOp::create(e, entry, e.i32(divisor));
        Value found =
            e.both(exists, e.cmp(arith::CmpIPredicate::eq, key, wanted));
        Value bit = arith::ShLIOp::create(
            e, arith::ExtUIOp::create(e, e.getI32Type(), found), e.toI32(j));
        return {arith::OrIOp::create(e, carried[0], bit)};
      })[0];
  return e.orOfWarp(bits);
}
