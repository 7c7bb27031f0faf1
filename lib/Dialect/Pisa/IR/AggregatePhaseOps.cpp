//===- AggregatePhaseOps.cpp - Phases of one task into tile ops -*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifiers.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::pisa;

/// Columns of a block are padded to the widest vector of the targets we know.
static constexpr int64_t kColumnAlign = 16;
/// Depth of one step of the targets' matrix products.
static constexpr int64_t kMatrixDepth = 16;

namespace {

/// How the columns of a block are grouped into nodes; see PisaTileOps.td.
struct ColumnGroups {
  int64_t group; ///< columns (children) of a node
  int64_t nodes; ///< nodes of a block
  int64_t columns() const {
    return llvm::alignTo(static_cast<uint64_t>(group * nodes), kColumnAlign);
  }
};

/// Emits the tile ops of one task.
class TaskBuilder {
public:
  TaskBuilder(OpBuilder &b, Operation *phase, ParamsAttr params,
              LoweringConfigAttr config)
      : b(b), loc(phase->getLoc()), params(params), config(config) {}

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value ceilDiv(Value x, Value y) {
    return arith::CeilDivSIOp::create(b, loc, x, y);
  }
  /// Element 0 of a [1] tensor of i32, as an index.
  Value scalar(Value tensor) {
    Value element =
        tensor::ExtractOp::create(b, loc, tensor, ValueRange{index(0)});
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), element);
  }
  Value empty(ArrayRef<OpFoldResult> sizes, Type elementType) {
    return tensor::EmptyOp::create(b, loc, sizes, elementType);
  }
  Value filled(ArrayRef<OpFoldResult> sizes, TypedAttr value) {
    Value init = empty(sizes, value.getType());
    Value constant = arith::ConstantOp::create(b, loc, value);
    return linalg::FillOp::create(b, loc, constant, init).getResult(0);
  }
  /// Lists of 0, 1, 2, ...
  Value countUp(ArrayRef<OpFoldResult> sizes) {
    Value init = empty(sizes, b.getI32Type());
    int64_t rank = sizes.size();
    auto generic = linalg::GenericOp::create(
        b, loc, init.getType(), ValueRange{}, init,
        b.getMultiDimIdentityMap(rank),
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [&](OpBuilder &b, Location loc, ValueRange) {
          Value i = linalg::IndexOp::create(b, loc, rank - 1);
          Value i32 = arith::IndexCastOp::create(b, loc, b.getI32Type(), i);
          linalg::YieldOp::create(b, loc, i32);
        });
    return generic.getResult(0);
  }
  OpFoldResult attr(int64_t value) { return b.getIndexAttr(value); }
  IntegerAttr i64(int64_t value) { return b.getI64IntegerAttr(value); }

  /// The leaves that hold the sequence's keys.
  Value leavesOf(Value kLen) {
    PyramidLayout layout{params.getBlockSize(), params.getFanout()};
    return layout.buildNumLeaves(b, loc, scalar(kLen));
  }

  /// Those of them that the task's last query may see.
  Value visibleLeaves(Value kLen, Value qStart, Value queryOffset, Value q) {
    Value leaves = leavesOf(kLen);
    if (!params.getCausal())
      return leaves;
    Value end = add(add(scalar(qStart), queryOffset),
                    tensor::DimOp::create(b, loc, q, 2));
    Value keys = arith::MaxSIOp::create(b, loc, end, index(0));
    return arith::MinSIOp::create(b, loc, leaves,
                                  ceilDiv(keys, index(params.getBlockSize())));
  }

  /// Rows of a query block, rounded up to whole row tiles.
  int64_t paddedRows(int64_t heads) {
    return llvm::alignTo(static_cast<uint64_t>(params.getQueryBlock() * heads),
                         static_cast<uint64_t>(config.getRowTile()));
  }

  /// Type of packed rows and columns.
  Type operandType() {
    return config.getOperandType() ? config.getOperandType() : b.getF32Type();
  }
  /// A head dimension as it is packed.
  int64_t paddedDim(int64_t headDim) {
    return config.getOperandType()
               ? llvm::alignTo(static_cast<uint64_t>(headDim), kMatrixDepth)
               : headDim;
  }
  /// Parts of the operand type whose sum holds all bits of the source's type.
  int64_t numParts(Value source) {
    Type type = shaped(source).getElementType(), operand = operandType();
    if (type == operand || operand.isF32())
      return 1;
    int64_t bits = cast<FloatType>(type).getFPMantissaWidth();
    int64_t part = cast<FloatType>(operand).getFPMantissaWidth();
    return llvm::divideCeil(bits, part);
  }
  /// The scale of scores; none where the packed queries carry it.
  Value scoreScale(Value scale) {
    return config.getOperandType() ? scale : Value();
  }
  /// Lists that a loop over blocks searches in every step, near at hand.
  Value stageLists(Value lists) {
    if (!config.getOperandType())
      return lists;
    Value init = empty(tensor::getMixedSizes(b, loc, lists), b.getI32Type());
    return linalg::CopyOp::create(b, loc, lists, init).getResult(0);
  }

  Value packQueries(Value q, Value scale, OpFoldResult queryBlocks) {
    Value init = empty({queryBlocks, attr(paddedRows(dimOf(q, 1))),
                        attr(paddedDim(dimOf(q, 3)))},
                       operandType());
    return PackQueriesOp::create(b, loc, init.getType(),
                                 i64(params.getQueryBlock()), q, scale, init)
        .getResult(0);
  }

  /// A leaf's keys are the children of one node.
  ColumnGroups keyColumns() { return {params.getBlockSize(), 1}; }

  Operation *packKeys(Value k, Value kLen, ColumnGroups groups, Value block,
                      Value columns, Value bias) {
    return PackColumnsOp::create(
        b, loc, TypeRange{columns.getType(), bias.getType()}, i64(groups.group),
        i64(groups.nodes), k, kLen, index(0), block, /*keys_per_row=*/index(1), /*listed=*/Value(), columns, bias);
  }

  /// Emits a loop over the union of `lists`, in ascending order. `step` gets
  /// the block and the carried tensors and returns their new values.
  ValueRange
  forEachBlock(Value lists, int64_t divisor, Value limit, ValueRange inits,
               function_ref<SmallVector<Value>(Value, ValueRange)> step) {
    SmallVector<Value> args = {index(-1)};
    llvm::append_range(args, inits);
    SmallVector<Type> types = llvm::to_vector(ValueRange(args).getTypes());
    auto loop = scf::WhileOp::create(
        b, loc, types, args,
        [&](OpBuilder &, Location loc, ValueRange args) {
          Value next =
              NextBlockOp::create(b, loc, i64(divisor), lists, args[0], limit);
          Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             next, limit);
          SmallVector<Value> forwarded = {next};
          llvm::append_range(forwarded, args.drop_front());
          scf::ConditionOp::create(b, loc, more, forwarded);
        },
        [&](OpBuilder &, Location loc, ValueRange args) {
          SmallVector<Value> yielded = {args[0]};
          llvm::append_range(yielded, step(args[0], args.drop_front()));
          scf::YieldOp::create(b, loc, yielded);
        });
    return loop.getResults().drop_front();
  }

  /// Makes a block of columns and their bias.
  using PackFn =
      function_ref<Operation *(Value block, Value columns, Value bias)>;

  /// Scores lists from one block of columns after the other.
  class BlockScorer {
  public:
    BlockScorer(TaskBuilder &t, Value packed, Value q, Value scale,
                int64_t parts, ColumnGroups groups, int64_t limit, PackFn pack)
        : t(t), packed(packed), scale(t.scoreScale(scale)), heads(dimOf(q, 1)),
          groups(groups), limit(limit), pack(pack) {
      columns = t.empty(
          {t.attr(parts * t.paddedDim(dimOf(q, 3))), t.attr(groups.columns())},
          t.operandType());
      bias = t.empty({t.attr(groups.columns())}, t.b.getF32Type());
      numQueries = tensor::DimOp::create(t.b, t.loc, q, 2);
    }
    Value score(Value lists, Value block, Value scores) {
      Operation *made = pack(block, columns, bias);
      return ScoreBlockOp::create(
                 t.b, t.loc, scores.getType(), t.i64(t.params.getQueryBlock()),
                 t.i64(heads), t.i64(groups.group), t.i64(groups.nodes),
                 t.i64(limit), t.i64(t.config.getRowTile()),
                 t.i64(t.config.getColumnTile()), packed, made->getResult(0),
                 made->getResult(1), lists, block, numQueries, scale, scores)
          .getResult(0);
    }

  private:
    TaskBuilder &t;
    Value packed, scale, columns, bias, numQueries;
    int64_t heads;
    ColumnGroups groups;
    int64_t limit;
    PackFn pack;
  };

  /// Scores of `lists` from the blocks of columns that they name.
  Value scoreBlocks(Value packed, Value lists, Value q, Value scale,
                    int64_t parts, ColumnGroups groups, Value limitBlock,
                    int64_t limit, Value init, PackFn pack) {
    BlockScorer scorer(*this, packed, q, scale, parts, groups, limit, pack);
    return forEachBlock(
        lists, groups.nodes, limitBlock, init,
        [&](Value block, ValueRange carried) -> SmallVector<Value> {
          return {scorer.score(lists, block, carried[0])};
        })[0];
  }

  /// Scores of the entries of `lists` below `limit`, from columns gathered for
  /// their union.
  Value scoreUnion(Value packed, Value lists, Value q, Value scale,
                   int64_t parts, ColumnGroups groups, Value limit,
                   int64_t most, Value init,
                   function_ref<Operation *(Value listed, Value block,
                                            Value columns, Value bias)>
                       pack) {
    // Whole blocks of them.
    int64_t capacity = llvm::alignTo(
        static_cast<uint64_t>(config.getQueryTile() / params.getQueryBlock() *
                              dimOf(lists, 3)),
        static_cast<uint64_t>(groups.nodes));
    Value nodes = empty({attr(capacity)}, b.getI32Type());
    Value count = empty({attr(1)}, b.getI32Type());
    Value places = empty(tensor::getMixedSizes(b, loc, lists), b.getI32Type());
    auto united = UnionNodesOp::create(
        b, loc, TypeRange{nodes.getType(), count.getType(), places.getType()},
        lists, limit, nodes, count, places);
    auto packListed = [&](Value block, Value columns, Value bias) {
      return pack(united.getResult(0), block, columns, bias);
    };
    BlockScorer scorer(*this, packed, q, scale, parts, groups, most,
                       packListed);
    Value blocks = ceilDiv(scalar(united.getResult(1)), index(groups.nodes));
    auto loop = scf::ForOp::create(
        b, loc, index(0), blocks, index(1), ValueRange{init},
        [&](OpBuilder &, Location loc, Value block, ValueRange carried) {
          Value scores = scorer.score(united.getResult(2), block, carried[0]);
          scf::YieldOp::create(b, loc, scores);
        });
    return loop.getResult(0);
  }

  OpBuilder &b;
  Location loc;
  ParamsAttr params;
  LoweringConfigAttr config;
};

/// Checks that a phase is one task, and returns its builder.
FailureOr<TaskBuilder> getTask(OpBuilder &b, Operation *op, ParamsAttr params,
                               Value list) {
  if (!cast<DestinationStyleOpInterface>(op).hasPureTensorSemantics())
    return op->emitOpError("expected tensors to decompose, but got memrefs");
  auto config = op->getAttrOfType<LoweringConfigAttr>("lowering_config");
  if (!config)
    return op->emitOpError("expected a 'lowering_config' to decompose, but got "
                           "none; run pisa-set-lowering-config");
  if (dimOf(list, 0) != 1 || dimOf(list, 1) != 1)
    return op->emitOpError("expected one sequence and one kv head, static, to "
                           "decompose; run pisa-tile-and-fuse");
  return TaskBuilder(b, op, params, config);
}

} // namespace

FailureOr<SmallVector<Value>> RouteUpperOp::decomposeOperation(OpBuilder &b) {
  FailureOr<TaskBuilder> task = getTask(b, *this, getParams(), getLeaves());
  if (failed(task))
    return failure();
  TaskBuilder &t = *task;
  Location loc = getLoc();
  ParamsAttr params = getParams();
  int64_t fanout = params.getFanout();
  int64_t beam = params.getBeamWidth(), width = params.getMaxCandidates();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  PyramidLayout layout{params.getBlockSize(), fanout};

  OpFoldResult queryBlocks = tensor::getMixedSize(b, loc, getLeaves(), 2);
  SmallVector<OpFoldResult> listSizes = {t.attr(1), t.attr(1), queryBlocks,
                                         t.attr(beam)};
  auto sizesOfWidth = [&](int64_t n) {
    SmallVector<OpFoldResult> sizes = listSizes;
    sizes.back() = t.attr(n);
    return sizes;
  };

  Value packed = t.packQueries(getQ(), getScale(), queryBlocks);
  Value leaves = t.leavesOf(getKLen());
  Value levels = layout.buildNumLevels(b, loc, leaves);
  Value one = t.index(1), two = t.index(2);

  // The search starts below the levels at which the task's last query sees at
  // most W nodes: all of them are kept there. Nodes that a query does not see
  // have no child that it sees.
  Value visible =
      t.visibleLeaves(getKLen(), getQStart(), getQueryOffset(), getQ());
  visible = t.ceilDiv(visible, t.index(fanout));
  auto search = scf::ForOp::create(
      b, loc, two, t.add(levels, one), one, ValueRange{visible, two},
      [&](OpBuilder &, Location loc, Value level, ValueRange args) {
        Value drops = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                            args[0], t.index(beam));
        Value next =
            arith::SelectOp::create(b, loc, drops, t.add(level, one), args[1]);
        scf::YieldOp::create(
            b, loc, ValueRange{t.ceilDiv(args[0], t.index(fanout)), next});
      });
  Value top = search.getResult(1);
  Value kept = t.countUp(listSizes);

  auto expand = [&](Value nodes, Value level, Value init) -> Value {
    return ExpandNodesOp::create(b, loc, init.getType(), params, nodes,
                                 getKLen(), getQStart(), getQueryOffset(),
                                 getQueryLength(), level, init)
        .getResult(0);
  };

  // A block of columns holds whole nodes, a multiple of the vector width of
  // them.
  int64_t nodes =
      std::max<int64_t>(llvm::alignDown<uint64_t>(
                            t.config.getColumnTile() / fanout, kColumnAlign),
                        kColumnAlign);
  ColumnGroups groups{fanout, nodes};

  // From the nodes kept at `level` to those kept at `level` - 1, down to 2.
  Value steps = t.sub(top, two);
  Value candidatesInit = t.empty(sizesOfWidth(width), i32);
  Value scoresInit = t.empty(sizesOfWidth(width), f32);
  auto loop = scf::ForOp::create(
      b, loc, t.index(0), steps, one, ValueRange{kept},
      [&](OpBuilder &, Location loc, Value step, ValueRange args) {
        Value level = t.sub(top, step);
        Value childLevel = t.sub(level, one);
        Value candidates = expand(args[0], level, candidatesInit);
        // A candidate is scored by the summaries of its own children.
        Value rowLevel = t.sub(level, two);
        Value rowBase =
            layout.buildLevelOffset(b, loc, getCapacityLeaves(), rowLevel);
        Value keysPerRow = t.mul(layout.buildSpan(b, loc, rowLevel),
                                 t.index(params.getBlockSize()));
        Value numNodes =
            t.ceilDiv(leaves, layout.buildSpan(b, loc, childLevel));
        auto packRows = [&](Value listed, Value block, Value columns,
                            Value bias) -> Operation * {
          return PackColumnsOp::create(
              b, loc, TypeRange{columns.getType(), bias.getType()},
              t.i64(groups.group), t.i64(groups.nodes), getPyramid(), getKLen(),
              rowBase, block, keysPerRow, listed, columns, bias);
        };
        Value scores =
            t.config.getCompact()
                ? t.scoreUnion(packed, candidates, getQ(), getScale(),
                               t.numParts(getPyramid()), groups, numNodes, beam,
                               scoresInit, packRows)
                : t.scoreBlocks(packed, candidates, getQ(), getScale(),
                                t.numParts(getPyramid()), groups,
                                t.ceilDiv(numNodes, t.index(nodes)), beam,
                                scoresInit,
                                [&](Value block, Value columns, Value bias) {
                                  return packRows({}, block, columns, bias);
                                });
        auto select = SelectTopkOp::create(
            b, loc, args[0].getType(), params, candidates, scores, getKLen(),
            getQStart(), getQueryOffset(), getQueryLength(), childLevel,
            args[0], Value(), Value());
        scf::YieldOp::create(b, loc, select.getResult(0));
      });
  return SmallVector<Value>{expand(loop.getResult(0), two, getLeaves())};
}

FailureOr<SmallVector<Value>> ScoreBlocksOp::decomposeOperation(OpBuilder &b) {
  FailureOr<TaskBuilder> task = getTask(b, *this, getParams(), getLeaves());
  if (failed(task))
    return failure();
  TaskBuilder &t = *task;
  Location loc = getLoc();
  Value packed = t.packQueries(getQ(), getScale(),
                               tensor::getMixedSize(b, loc, getLeaves(), 2));
  ColumnGroups groups = t.keyColumns();
  return SmallVector<Value>{t.scoreBlocks(
      packed, t.stageLists(getLeaves()), getQ(), getScale(), /*parts=*/1,
      groups, t.leavesOf(getKLen()), getLimit(), getScores(),
      [&](Value block, Value columns, Value bias) -> Operation * {
        return t.packKeys(getK(), getKLen(), groups, block, columns, bias);
      })};
}

FailureOr<SmallVector<Value>>
PrescoreBlocksOp::decomposeOperation(OpBuilder &b) {
  FailureOr<TaskBuilder> task = getTask(b, *this, getParams(), getLeaves());
  if (failed(task))
    return failure();
  TaskBuilder &t = *task;
  Location loc = getLoc();
  Value packed = t.packQueries(getQ(), getScale(),
                               tensor::getMixedSize(b, loc, getLeaves(), 2));
  ColumnGroups groups{getParams().getLeafAtoms() + 1, kColumnAlign};
  Value limitBlock = t.ceilDiv(t.leavesOf(getKLen()), t.index(groups.nodes));
  return SmallVector<Value>{t.scoreBlocks(
      packed, t.stageLists(getLeaves()), getQ(), getScale(),
      t.numParts(getAtoms()), groups, limitBlock, getLimit(), getScores(),
      [&](Value block, Value columns, Value bias) -> Operation * {
        return PackAtomsOp::create(
            b, loc, TypeRange{columns.getType(), bias.getType()},
            t.i64(getParams().getBlockSize()), t.i64(groups.nodes), getK(),
            getAtoms(), getOutlier(), getKLen(), block, columns, bias);
      })};
}

FailureOr<SmallVector<Value>> AttendTilesOp::decomposeOperation(OpBuilder &b) {
  FailureOr<TaskBuilder> task = getTask(b, *this, getParams(), getIndices());
  if (failed(task))
    return failure();
  TaskBuilder &t = *task;
  Location loc = getLoc();
  ParamsAttr params = getParams();
  int64_t blockSize = params.getBlockSize();
  OpFoldResult queryBlocks = tensor::getMixedSize(b, loc, getIndices(), 2);
  Value packed = t.packQueries(getQ(), getScale(), queryBlocks);

  Value limit =
      t.visibleLeaves(getKLen(), getQStart(), getQueryOffset(), getQ());

  OpFoldResult rows = t.attr(t.paddedRows(dimOf(getQ(), 1)));
  OpFoldResult valueDim = t.attr(t.paddedDim(dimOf(getV(), 3)));
  float inf = std::numeric_limits<float>::infinity();
  Value acc = t.filled({queryBlocks, rows, valueDim}, b.getF32FloatAttr(0));
  Value max = t.filled({queryBlocks, rows}, b.getF32FloatAttr(-inf));
  Value sum = t.filled({queryBlocks, rows}, b.getF32FloatAttr(0));

  // A block of keys, or one part of it after the other.
  int64_t numKeys = t.config.getKeyTile() ? t.config.getKeyTile() : blockSize;
  int64_t parts = blockSize / numKeys;
  ColumnGroups groups{numKeys, 1};
  Value columns =
      t.empty({t.attr(t.paddedDim(dimOf(getQ(), 3))), t.attr(groups.columns())},
              t.operandType());
  Value bias = t.empty({t.attr(groups.columns())}, b.getF32Type());
  Value values = t.empty({t.attr(numKeys), valueDim}, t.operandType());
  Value lists = t.stageLists(getIndices());
  ValueRange state = t.forEachBlock(
      lists, /*divisor=*/1, limit, {acc, max, sum},
      [&](Value block, ValueRange carried) {
        SmallVector<Value> state(carried);
        for (int64_t part = 0; part < parts; ++part) {
          Value number = block;
          if (parts > 1)
            number = t.add(t.mul(block, t.index(parts)), t.index(part));
          Operation *packedKeys = t.packKeys(getK(), getKLen(), groups, number,
                                             columns, bias);
          auto packedValues = PackValuesOp::create(
              b, loc, values.getType(), getV(), getKLen(), number, values);
          auto attend = AttendBlockOp::create(
              b, loc, ValueRange(state).getTypes(), params,
              t.i64(dimOf(getQ(), 1)), t.i64(t.config.getRowTile()),
              t.i64(t.config.getColumnTile()), t.i64(part), packed,
              packedKeys->getResult(0), packedKeys->getResult(1),
              packedValues.getResult(0), lists, block, getQStart(),
              getQueryOffset(), t.scoreScale(getScale()), state[0], state[1],
              state[2]);
          state.assign(attend.getResults().begin(), attend.getResults().end());
        }
        return state;
      });
  auto finish = FinishAttentionOp::create(
      b, loc, getResultTypes(), t.i64(params.getQueryBlock()), state[0],
      state[1], state[2], getO(), getLse());
  return llvm::to_vector_of<Value>(finish.getResults());
}
