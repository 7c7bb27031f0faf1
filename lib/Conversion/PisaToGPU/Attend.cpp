//===- Attend.cpp - Attention tile ops into matrix products -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Softmax.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::pisa;

namespace {

struct AttendBlock : TaskPattern<AttendBlockOp> {
  using TaskPattern::TaskPattern;

  Value fragmentOf(WarpEmitter &e, Value buffer) const {
    return task.fragments.lookup(getStorage(buffer));
  }

  LogicalResult matchAndRewrite(AttendBlockOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value accs = fragmentOf(e, op.getAcc()), maxs = fragmentOf(e, op.getMax()),
          sums = fragmentOf(e, op.getSum());
    if (!accs || !maxs || !sums)
      return rewriter.notifyMatchFailure(op, "accumulators are not private");
    ParamsAttr params = op.getParams();
    RowLayout layout = RowLayout::get(e, op.getQueries(),
                                      params.getQueryBlock(), op.getHeads());
    int64_t depth = e.staticDim(op.getQueries(), 2);
    Value rows = e.rowsOf(op.getQueries());
    Value columns = getStorage(op.getColumns());
    Value values = getStorage(op.getValues());
    Value scale = arith::MulFOp::create(e, op.getScale(),
                                        e.f32(static_cast<float>(M_LOG2E)));

    e.forEachRowTile(layout.numRows, [&](Value place, Value tile) {
      Value first = layout.firstBlock(e, tile);
      Value listed = emitListedMask(e, op.getLists(), first,
                                    layout.blocksPerTile(), 1, op.getBlock());
      e.when(e.cmp(arith::CmpIPredicate::ne, listed, e.i32(0)), [&] {
        Value q = e.loadFragment(rows, {e.mul(tile, e.idx(kRows)), e.idx(0)},
                                 kRows, depth);
        Softmax state{e.load(accs, place), e.load(maxs, place),
                      e.load(sums, place)};
        Mask mask = Mask::get(e, op, layout, tile, listed);
        state.attend(
            e, q, columns, values, scale, op.getNumKeys(),
            [&](Value s, Piece piece) { return mask.apply(e, s, piece); });
        e.store(state.acc, accs, place);
        e.store(state.max, maxs, place);
        e.store(state.sum, sums, place);
      });
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// Which keys of a block the rows of a tile may see.
  struct Mask {
    Value needed; ///< whether any key is hidden from any row
    Value limits; ///< 16 x 1, i32: last key of the block that a row sees
    Value bias;   ///< memref<1 x Cols>: -inf past the sequence's end

    static Mask get(WarpEmitter &e, AttendBlockOp op, const RowLayout &layout,
                    Value tile, Value listed) {
      ParamsAttr params = op.getParams();
      int64_t numKeys = op.getNumKeys();
      auto [block, row] = layout.blockAndRow(e, tile);
      // Rows whose list does not name the block see nothing of it.
      Value bit = arith::AndIOp::create(
          e, arith::ShRUIOp::create(e, e.spread(listed, 1), block),
          e.spread(e.i32(1), 1));
      Value isListed =
          e.cmp(arith::CmpIPredicate::ne, bit, e.spread(e.i32(0), 1));
      Value limits = e.spread(e.i32(numKeys), 1);
      int32_t all =
          layout.blocksPerTile() == 32
              ? -1
              : static_cast<int32_t>((1u << layout.blocksPerTile()) - 1);
      Mask mask;
      mask.needed = e.cmp(arith::CmpIPredicate::ne, listed, e.i32(all));
      if (params.getCausal()) {
        // Position of a row's query less the block's first key.
        Value start = e.add(e.toIndex(e.load(op.getQStart(), e.idx(0))),
                            op.getQueryOffset());
        Value base = e.add(start, e.mul(layout.firstBlock(e, tile),
                                        e.idx(params.getQueryBlock())));
        Value firstKey =
            e.add(e.mul(op.getBlock(), e.idx(params.getBlockSize())),
                  e.idx(op.getFirstKey()));
        // Clamped, so that any distance fits in i32.
        Value distance = e.sub(base, firstKey);
        Value near = e.max(e.min(distance, e.idx(1 << 24)), e.idx(-(1 << 24)));
        Value heads = e.spread(e.i32(layout.heads), 1);
        Value query = arith::DivUIOp::create(e, row, heads);
        Value steps = e.spread(e.i32(params.getQueryBlock()), 1);
        query = e.add(query, e.mul(block, steps));
        limits = e.add(query, e.spread(e.toI32(near), 1));
        // The tile's first query sees the whole block, and so do the others.
        Value cut =
            e.cmp(arith::CmpIPredicate::slt, near, e.idx(numKeys - 1));
        mask.needed = arith::OrIOp::create(e, mask.needed, cut);
      }
      mask.limits =
          arith::SelectOp::create(e, isListed, limits, e.spread(e.i32(-1), 1));
      int64_t numColumns = e.staticDim(op.getColumns(), 1);
      SmallVector<ReassociationIndices> groups = {{0, 1}};
      mask.bias =
          memref::ExpandShapeOp::create(e, ArrayRef<int64_t>{1, numColumns},
                                        getStorage(op.getBias()), groups);
      // Keys past the end are the last of a block, and their bias is not 0.
      Value last = e.load(mask.bias, {e.idx(0), e.idx(numKeys - 1)});
      Value partial =
          arith::CmpFOp::create(e, arith::CmpFPredicate::UNE, last, e.f32(0));
      mask.needed = arith::OrIOp::create(e, mask.needed, partial);
      return mask;
    }

    Value apply(WarpEmitter &e, Value s, Piece piece) const {
      return e.choose(
          needed, s.getType(),
          [&] {
            Value column = e.columnNumbers(piece.width, piece.offset);
            Value weights = e.loadFragment(
                bias, {e.idx(0), e.idx(piece.offset)}, 1, piece.width);
            Value seen = e.cmp(arith::CmpIPredicate::sle,
                               e.spreadTo(column, piece.width),
                               e.spreadTo(limits, piece.width));
            Value weighted =
                arith::AddFOp::create(e, s, e.spreadTo(weights, piece.width));
            return SmallVector<Value>{arith::SelectOp::create(
                e, seen, weighted,
                e.constantFragment(e.negInf(), piece.width))};
          },
          [&] { return SmallVector<Value>{s}; })[0];
    }
  };
};

struct FinishAttention : TaskPattern<FinishAttentionOp> {
  using TaskPattern::TaskPattern;

  LogicalResult matchAndRewrite(FinishAttentionOp op,
                                PatternRewriter &rewriter) const override {
    WarpEmitter e(rewriter, op, task);
    Value accs = task.fragments.lookup(getStorage(op.getAcc()));
    Value maxs = task.fragments.lookup(getStorage(op.getMax()));
    Value sums = task.fragments.lookup(getStorage(op.getSum()));
    if (!accs || !maxs || !sums)
      return rewriter.notifyMatchFailure(op, "accumulators are not private");
    Value o = op.getO(), zero = e.idx(0);
    Type type = cast<MemRefType>(o.getType()).getElementType();
    int64_t heads = e.staticDim(o, 1), headDim = e.staticDim(o, 3);
    int64_t valueDim = e.staticDim(op.getAcc(), 2);
    RowLayout layout =
        RowLayout::get(e, op.getAcc(), op.getQueryBlock(), heads);
    int64_t pitch = valueDim + kRows / 2;
    int64_t stagedRows = kRows * task.numWarps;
    Value staged = e.scratchView({stagedRows, pitch}, type);
    Value stagedLse = e.scratchView(
        {stagedRows, 1}, e.getF32Type(),
        llvm::alignTo(static_cast<uint64_t>(stagedRows * pitch *
                                            type.getIntOrFloatBitWidth() / 8),
                      16));
    Value numQueries = e.dim(o, 2);

    e.forEachRowTile(layout.numRows, [&](Value place, Value tile) {
      Softmax state{e.load(accs, place), e.load(maxs, place),
                    e.load(sums, place)};
      Value out = state.normalized(e, valueDim, type);
      Value row0 = e.mul(e.warp(), e.idx(kRows));
      vector::StoreOp::create(e, out, staged, ValueRange{row0, zero});
      Value lse = arith::MulFOp::create(
          e, state.lse2(e), e.constantFragment(static_cast<float>(M_LN2), 1));
      vector::StoreOp::create(e, lse, stagedLse, ValueRange{row0, zero});
      e.syncWarp();

      // Where row r of the tile goes, if it is a real one.
      auto target = [&](Value r) {
        Value row = e.add(e.mul(tile, e.idx(kRows)), r);
        Value j = e.div(row, layout.rowsPerBlock);
        Value inner = e.rem(row, layout.rowsPerBlock);
        Value query =
            e.add(e.mul(j, e.idx(op.getQueryBlock())), e.div(inner, heads));
        Value real =
            e.both(e.cmp(arith::CmpIPredicate::slt, inner,
                         e.idx(op.getQueryBlock() * heads)),
                   e.cmp(arith::CmpIPredicate::slt, query, numQueries));
        return std::tuple(real, e.rem(inner, heads), query);
      };
      int64_t chunks = headDim / kChunk;
      Value aligned = e.isAligned(o);
      e.forEachLane(e.idx(kRows * chunks), [&](Value i) {
        Value r = e.div(i, chunks);
        Value depth = e.mul(e.rem(i, chunks), e.idx(kChunk));
        Value real, head, query;
        std::tie(real, head, query) = target(r);
        Value from = e.add(row0, r);
        e.when(real, [&] {
          e.when(
              aligned,
              [&] {
                auto chunk = VectorType::get({kChunk}, type);
                llvm::MaybeAlign align(16);
                Value x = vector::LoadOp::create(e, chunk, staged,
                                                 ValueRange{from, depth},
                                                 /*nontemporal=*/false, align);
                vector::StoreOp::create(e, x, o,
                                        ValueRange{zero, head, query, depth},
                                        /*nontemporal=*/false, align);
              },
              [&] {
                e.loop(zero, e.idx(kChunk), 1, [&](Value k) {
                  Value d = e.add(depth, k);
                  e.store(e.load(staged, {from, d}), o, {zero, head, query, d});
                });
              });
        });
      });
      if (op.getLse())
        e.forEachLane(e.idx(kRows), [&](Value r) {
          Value real, head, query;
          std::tie(real, head, query) = target(r);
          e.when(real, [&] {
            e.store(e.load(stagedLse, {e.add(row0, r), zero}), op.getLse(),
                    {zero, head, query});
          });
        });
      // The next tile of this warp overwrites what was staged.
      e.syncWarp();
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateGPUAttendPatterns(RewritePatternSet &patterns,
                                     const TaskContext &task) {
  patterns.add<AttendBlock, FinishAttention>(patterns.getContext(), task);
}
