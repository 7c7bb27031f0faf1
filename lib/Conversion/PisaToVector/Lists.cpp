//===- Lists.cpp - List tile ops into loops over vectors --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

static constexpr int64_t kLanes = 16;

namespace {

struct NextBlock : OpRewritePattern<NextBlockOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NextBlockOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value lists = op.getLists();
    int64_t n = cast<MemRefType>(lists.getType()).getDimSize(3);
    Value after = e.toI32(op.getAfter()), limit = e.toI32(op.getLimit());

    // Lanes keep their own minimum; whatever does not qualify counts as
    // `limit`.
    auto qualify = [&](Value entries, int64_t width) -> Value {
      Value limits = e.broadcast(limit, width);
      Value key = op.getDivisor() == 1
                      ? entries
                      : Value(arith::DivUIOp::create(
                            e, entries, e.splatI32(op.getDivisor(), width)));
      Value ok = e.both(
          e.cmp(arith::CmpIPredicate::sgt, key, e.broadcast(after, width)),
          e.cmp(arith::CmpIPredicate::slt, key, limits));
      ok = e.both(
          ok, e.cmp(arith::CmpIPredicate::sge, entries, e.splatI32(0, width)));
      return arith::SelectOp::create(e, ok, key, limits);
    };
    int64_t whole = n / kLanes * kLanes, rest = n - whole;
    SmallVector<Value> best;
    for (int64_t width : {whole > 0 ? kLanes : 0, rest})
      if (width > 0)
        best.push_back(e.broadcast(limit, width));
    auto least = [&](Value j, Value offset, int64_t width, Value sofar) {
      Value entries =
          e.loadVector(lists, {e.idx(0), e.idx(0), j, offset}, width);
      return e.min(sofar, qualify(entries, width));
    };
    best = e.loop(
        e.idx(0), e.dim(lists, 2), 1, best, [&](Value j, ValueRange carried) {
          auto next = llvm::to_vector_of<Value>(carried);
          if (whole > 0)
            next[0] = e.loop(
                e.idx(0), e.idx(whole), kLanes, next[0],
                [&](Value offset, ValueRange sofar) -> SmallVector<Value> {
                  return {least(j, offset, kLanes, sofar[0])};
                })[0];
          if (rest > 0)
            next.back() = least(j, e.idx(whole), rest, next.back());
          return next;
        });
    Value result;
    for (Value lanes : best) {
      Value lowest =
          vector::ReductionOp::create(e, vector::CombiningKind::MINSI, lanes);
      result = result ? e.min(result, lowest) : lowest;
    }
    rewriter.replaceOp(op, e.toIndex(result));
    return success();
  }
};

struct ExpandNodes : OpRewritePattern<ExpandNodesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ExpandNodesOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    ParamsAttr params = op.getParams();
    Value nodes = op.getNodes(), children = op.getChildren();
    int64_t n = cast<MemRefType>(nodes.getType()).getDimSize(3);
    int64_t fanout = params.getFanout();
    Value zero = e.idx(0);
    Positions positions =
        Positions::get(e, params, op.getKLen(), op.getQStart(),
                       op.getQueryOffset(), op.getQueryLength());
    PyramidLayout layout{params.getBlockSize(), fanout};
    Value childLevel = e.sub(op.getLevel(), e.idx(1));
    Value keysPerChild = e.mul(layout.buildSpan(e, e.getLoc(), childLevel),
                               e.idx(params.getBlockSize()));

    e.loop(zero, e.dim(nodes, 2), 1, [&](Value j) {
      // A child is visible if it starts below this.
      Value end = positions.kLen;
      if (params.getCausal())
        end = e.min(end, e.add(positions.ofBlock(e, j).second, e.idx(1)));
      SmallVector<Value> count =
          e.loop(zero, e.idx(n), 1, zero, [&](Value i, ValueRange outer) {
            Value node = e.toIndex(e.load(nodes, {zero, zero, j, i}));
            Value valid = e.cmp(arith::CmpIPredicate::sge, node, zero);
            return e.loop(
                zero, e.idx(fanout), 1, outer,
                [&](Value c, ValueRange inner) -> SmallVector<Value> {
                  Value child = e.add(e.mul(node, e.idx(fanout)), c);
                  Value visible =
                      e.both(valid, e.cmp(arith::CmpIPredicate::slt,
                                          e.mul(child, keysPerChild), end));
                  e.when(visible, [&] {
                    e.store(e.toI32(child), children,
                            {zero, zero, j, inner[0]});
                  });
                  Value next = e.add(inner[0], e.idx(1));
                  return {arith::SelectOp::create(e, visible, next, inner[0])};
                });
          });
      e.loop(count[0], e.idx(n * fanout), 1, [&](Value i) {
        e.store(e.i32(-1), children, {zero, zero, j, i});
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Orders candidates by an integer key: forced ones first, then by score as
/// docs/Spec.md section 2 says, padding last.
struct SelectTopk : OpRewritePattern<SelectTopkOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SelectTopkOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOneTask(op.getNodes()))
      return rewriter.notifyMatchFailure(op, "not one task");
    Emitter e(rewriter, op);
    ParamsAttr params = op.getParams();
    Value nodes = op.getNodes(), kept = op.getKept();
    int64_t n = cast<MemRefType>(nodes.getType()).getDimSize(3);
    int64_t limit = cast<MemRefType>(kept.getType()).getDimSize(3);
    Value zero = e.idx(0), one = e.idx(1);
    Positions positions =
        Positions::get(e, params, op.getKLen(), op.getQStart(),
                       op.getQueryOffset(), op.getQueryLength());
    Value span = one;
    if (op.getLevel())
      span = PyramidLayout{params.getBlockSize(), params.getFanout()}.buildSpan(
          e, e.getLoc(), op.getLevel());
    int64_t paddedWidth = (n + kLanes - 1) / kLanes * kLanes;
    Value keys = e.scratch({paddedWidth}, e.getI32Type());

    // Appends entry `i` of the list at `slot`.
    auto keep = [&](Value j, Value i, Value slot) {
      e.store(e.load(nodes, {zero, zero, j, i}), kept, {zero, zero, j, slot});
      if (Value scores = op.getKeptScores())
        e.store(e.load(op.getScores(), {zero, zero, j, i}), scores,
                {zero, zero, j, slot});
    };

    e.loop(zero, e.dim(nodes, 2), 1, [&](Value j) {
      Value fits = arith::ConstantOp::create(e, e.getBoolAttr(true));
      if (limit < n) {
        Value next = e.load(nodes, {zero, zero, j, e.idx(limit)});
        fits = e.cmp(arith::CmpIPredicate::slt, next, e.i32(0));
      }
      SmallVector<Value> count = e.choose(
          fits, e.getIndexType(),
          [&] {
            return e.loop(
                zero, e.idx(std::min(n, limit)), 1, zero,
                [&](Value i, ValueRange carried) -> SmallVector<Value> {
                  Value node = e.load(nodes, {zero, zero, j, i});
                  Value valid =
                      e.cmp(arith::CmpIPredicate::sge, node, e.i32(0));
                  e.when(valid, [&] { keep(j, i, carried[0]); });
                  return {arith::SelectOp::create(
                      e, valid, e.add(carried[0], one), carried[0])};
                });
          },
          [&] {
            e.loop(zero, e.idx(n), 1, [&](Value i) {
              Value node = e.toIndex(e.load(nodes, {zero, zero, j, i}));
              Value key =
                  orderedKey(e, e.load(op.getScores(), {zero, zero, j, i}));
              key = arith::SelectOp::create(
                  e, isForced(e, positions, node, span, j), e.i32(kForcedKey),
                  key);
              Value padding = e.cmp(arith::CmpIPredicate::slt, node, zero);
              key =
                  arith::SelectOp::create(e, padding, e.i32(kPaddingKey), key);
              e.store(key, keys, i);
            });
            e.loop(e.idx(n), e.idx(paddedWidth), 1,
                   [&](Value i) { e.store(e.i32(kPaddingKey), keys, i); });
            return e.loop(
                zero, e.idx(n), 1, zero, [&](Value i, ValueRange carried) {
                  return keepIfRanked(e, keys, paddedWidth, limit, i,
                                      carried[0],
                                      [&](Value slot) { keep(j, i, slot); });
                });
          });
      e.loop(count[0], e.idx(limit), 1, [&](Value slot) {
        e.store(e.i32(-1), kept, {zero, zero, j, slot});
        if (Value scores = op.getKeptScores())
          e.store(e.f32(e.negInf()), scores, {zero, zero, j, slot});
      });
      if (Value counts = op.getCount())
        e.store(e.toI32(count[0]), counts, {zero, zero, j});
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// Keeps entry `i` if fewer than `limit` entries come before it: those with a
  /// higher key, and those with the same key and a lower index.
  static SmallVector<Value> keepIfRanked(Emitter &e, Value keys, int64_t width,
                                         int64_t limit, Value i, Value slot,
                                         function_ref<void(Value)> keep) {
    Value key = e.load(keys, i);
    Value keyLanes = e.broadcast(key, kLanes);
    Value iLanes = e.broadcast(e.toI32(i), kLanes);
    Value ones = e.splatI32(1, kLanes), zeros = e.splatI32(0, kLanes);
    Value before = e.loop(
        e.idx(0), e.idx(width), kLanes, zeros,
        [&](Value base, ValueRange carried) -> SmallVector<Value> {
          Value others = e.loadVector(keys, base, kLanes);
          Value index =
              e.add(e.broadcast(e.toI32(base), kLanes), e.iota(kLanes));
          Value higher = e.cmp(arith::CmpIPredicate::sgt, others, keyLanes);
          Value earlier =
              e.both(e.cmp(arith::CmpIPredicate::eq, others, keyLanes),
                     e.cmp(arith::CmpIPredicate::slt, index, iLanes));
          Value wins = arith::OrIOp::create(e, higher, earlier);
          return {
              e.add(carried[0], arith::SelectOp::create(e, wins, ones, zeros))};
        })[0];
    Value rank =
        vector::ReductionOp::create(e, vector::CombiningKind::ADD, before);
    Value kept =
        e.both(e.cmp(arith::CmpIPredicate::slt, rank, e.i32(limit)),
               e.cmp(arith::CmpIPredicate::ne, key, e.i32(kPaddingKey)));
    e.when(kept, [&] { keep(slot); });
    return {arith::SelectOp::create(e, kept, e.add(slot, e.idx(1)), slot)};
  }
};

struct CheckIndices : OpRewritePattern<CheckIndicesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CheckIndicesOp op,
                                PatternRewriter &rewriter) const override {
    Emitter e(rewriter, op);
    Value indices = op.getIndices();
    int64_t width = cast<MemRefType>(indices.getType()).getDimSize(3);
    // The runtime's side of this is lib/Runtime/CpuRuntime.cpp.
    constexpr StringLiteral kReport = "pisaReportDuplicateBlock";
    auto module = op->getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(kReport)) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(module.getBody());
      Type i64 = rewriter.getI64Type();
      auto type = rewriter.getFunctionType({i64, i64, i64, i64}, {});
      auto func = func::FuncOp::create(rewriter, op.getLoc(), kReport, type);
      func.setPrivate();
    }
    Value zero = e.idx(0);
    auto loops = [&](auto body) {
      e.loop(zero, e.dim(indices, 0), 1, [&](Value b) {
        e.loop(zero, e.dim(indices, 1), 1, [&](Value h) {
          e.loop(zero, e.dim(indices, 2), 1, [&](Value j) { body(b, h, j); });
        });
      });
    };
    loops([&](Value b, Value h, Value j) {
      e.loop(zero, e.idx(width), 1, [&](Value i) {
        Value entry = e.load(indices, {b, h, j, i});
        Value valid = e.cmp(arith::CmpIPredicate::sge, entry, e.i32(0));
        e.loop(zero, i, 1, [&](Value other) {
          Value same = e.cmp(arith::CmpIPredicate::eq, entry,
                             e.load(indices, {b, h, j, other}));
          e.when(e.both(valid, same), [&] {
            SmallVector<Value> args;
            for (Value value : {b, h, j, e.toIndex(entry)})
              args.push_back(
                  arith::IndexCastOp::create(e, e.getI64Type(), value));
            func::CallOp::create(e, kReport, TypeRange{}, args);
          });
        });
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void pisa::populateListPatterns(RewritePatternSet &patterns) {
  patterns.add<NextBlock, ExpandNodes, SelectTopk, CheckIndices>(
      patterns.getContext());
}
