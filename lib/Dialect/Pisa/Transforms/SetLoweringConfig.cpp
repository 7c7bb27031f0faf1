//===- SetLoweringConfig.cpp - The tiling policy ----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::pisa {
#define GEN_PASS_DEF_PISASETLOWERINGCONFIGPASS
#include "pisa/Dialect/Pisa/Transforms/Passes.h.inc"
} // namespace mlir::pisa

using namespace mlir;
using namespace mlir::pisa;

namespace {

/// What the inner loops may hold in registers.
struct RegisterBudget {
  int64_t accumulators; ///< vector registers for accumulators
  int64_t lanes;        ///< float32 lanes of one
  int64_t columnTile;   ///< keys held at a time

  /// AVX-512 has 32 registers: 24 accumulators leave room for four vectors of
  /// keys and the broadcasts. AVX2 and SSE have 16.
  static RegisterBudget forVectorBits(int64_t bits) {
    return bits >= 512 ? RegisterBudget{24, 16, 64}
                       : RegisterBudget{12, bits / 32, bits / 8};
  }
};

/// Queries of one task. Tasks share packed blocks among their queries, so they
/// want to be large; 64 tokens see few more blocks than one in real models.
constexpr int64_t kQueryTile = 64;
constexpr int64_t kLeafTile = 256;

/// Rows held at a time: all rows of a query block if they fit, otherwise equal
/// parts of them.
int64_t getRowTile(int64_t rows, const RegisterBudget &budget) {
  int64_t most = std::max<int64_t>(1, budget.accumulators * budget.lanes /
                                          budget.columnTile);
  return llvm::divideCeil(rows, llvm::divideCeil(rows, most));
}

LoweringConfigAttr getConfig(Operation *op, ParamsAttr params, int64_t heads,
                             int64_t vectorBits) {
  RegisterBudget budget = RegisterBudget::forVectorBits(vectorBits);
  int64_t queryBlock = params.getQueryBlock();
  int64_t queryTile = llvm::alignTo(kQueryTile, queryBlock);
  return LoweringConfigAttr::get(op->getContext(), queryTile, kLeafTile,
                                 getRowTile(queryBlock * heads, budget),
                                 budget.columnTile, /*key_tile=*/0, /*gather=*/0,
                                 /*chunk=*/0, /*compact=*/false,
                                 /*operand_type=*/Type());
}

/// Rows of one mma.sync.
constexpr int64_t kMatrixRows = 16;
constexpr int64_t kGpuLeafTile = 8;
/// Rows of the queries that a task gathers for one leaf. Larger query blocks
/// are scored by tiles: they share what they load among themselves.
constexpr int64_t kGatheredRows = 512;
/// Scores of a row that a warp holds: 32 registers a lane.
constexpr int64_t kGpuColumnTile = 64;
/// Workgroup memory for a block's keys and values, what sm_80 has less some
/// kilobytes for everything else.
constexpr int64_t kBlockBytes = 160000;
/// The same beside a tile of 64 rows of 256 elements.
constexpr int64_t kKeyBytes = 120000;
/// Workgroup memory for the lists of a task: what leaves room for four tasks on
/// a multiprocessor with W = 16, and for one with W = 512.
constexpr int64_t kListBytes = 65536;

/// Queries whose partial outputs, one for each chosen block with its weights'
/// sum, fit in `bytes`: whole tiles of them.
int64_t getChunk(AttentionOp op, int64_t queryTile, int64_t bytes) {
  auto shape = [](Value x) { return cast<ShapedType>(x.getType()).getShape(); };
  Type type = cast<ShapedType>(op.getQ().getType()).getElementType();
  int64_t row = shape(op.getV())[3] * type.getIntOrFloatBitWidth() / 8 + 4;
  int64_t query = shape(op.getQ())[1] * shape(op.getIndices())[3] * row;
  int64_t most = 1 << 20;
  return std::clamp<int64_t>(bytes / query / queryTile, 1, most / queryTile) *
         queryTile;
}

/// A head dimension as rows are stored, without their padding.
int64_t getRowWidth(Value x) {
  int64_t dim = cast<ShapedType>(x.getType()).getShape().back();
  return static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(dim), kMatrixRows));
}

/// The largest part of a block whose keys and values leave room for a tile of
/// queries in the workgroup memory of any chip; 0: all of it.
int64_t getKeyTile(AttentionOp op) {
  int64_t rowBytes =
      2 * (getRowWidth(op.getQ()) + getRowWidth(op.getV()) + kMatrixRows);
  int64_t blockSize = op.getParams().getBlockSize(), tile = blockSize;
  while (tile * rowBytes > kKeyBytes)
    tile /= 2;
  return tile == blockSize ? 0 : tile;
}

/// Whether a block's keys and values and the rows of four warps, twice, fit in
/// the workgroup memory of any chip.
bool fitsByBlock(AttentionOp op) {
  int64_t depth = getRowWidth(op.getQ()), valueDim = getRowWidth(op.getV());
  int64_t pad = kMatrixRows / 2;
  int64_t elements =
      op.getParams().getBlockSize() * (depth + valueDim + 2 * pad) +
      2 * 4 * kMatrixRows * (std::max(depth, valueDim) + pad);
  return 2 * elements <= kBlockBytes;
}

/// Whether attention by key block is the faster strategy, for many keys. Its cost
/// does not depend on what was chosen; that of a tile grows with the union of its
/// lists (docs/benchmarks.md).
bool prefersBlocks(AttentionOp op, int64_t rows) {
  // Rows of one query block that fill a matrix product waste nothing on a union,
  // and partial outputs cost more than what is loaded twice.
  if (rows >= kMatrixRows || !fitsByBlock(op))
    return false;
  // With half of the rows a tile still wins if queries agree: measured with 8
  // heads a group, 37 against 47 ms where 8 queries share 2.5 K blocks, 80
  // against 48 where they share 6 K.
  auto hint = op->getAttrOfType<FloatAttr>("pisa.union_hint");
  return !hint || 2 * rows < kMatrixRows || hint.getValueAsDouble() > 3;
}

/// Query blocks of a task of routing whose lists fit: those that are kept,
/// and four of their children's width.
int64_t limitByLists(ParamsAttr params, int64_t blocks, int64_t paddedRows) {
  int64_t bytes = 4 * params.getBeamWidth() * (1 + 4 * params.getFanout());
  int64_t most = std::max<int64_t>(1, kListBytes / bytes);
  if (blocks <= most)
    return blocks;
  // Whole row tiles, if that many fit.
  int64_t unit = std::max<int64_t>(1, kMatrixRows / paddedRows);
  return most < unit ? most : most / unit * unit;
}

/// A query block's rows are a power of two up to 16, so that no query straddles
/// two warps, or whole warps.
LoweringConfigAttr getGpuConfig(Operation *op, ParamsAttr params, int64_t heads,
                                Type operandType, int64_t taskRows,
                                int64_t partialBytes) {
  int64_t queryBlock = params.getQueryBlock();
  int64_t rows = queryBlock * heads;
  int64_t rowTile = std::min<int64_t>(llvm::PowerOf2Ceil(rows), kMatrixRows);
  int64_t paddedRows = llvm::alignTo(rows, rowTile);
  int64_t blocks = std::max<int64_t>(1, taskRows / paddedRows);
  if (isa<RouteOp>(op))
    blocks = limitByLists(params, blocks, paddedRows);
  int64_t queryTile = blocks * queryBlock, gather = kGatheredRows / paddedRows;
  int64_t chunk = 0, keyTile = 0;
  if (auto attention = dyn_cast<AttentionOp>(op))
    keyTile = getKeyTile(attention);
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && gather > 0 && partialBytes > 0 &&
      prefersBlocks(attention, rows))
    chunk = getChunk(attention, queryTile, partialBytes);
  return LoweringConfigAttr::get(op->getContext(), queryTile, kGpuLeafTile,
                                 rowTile, kGpuColumnTile, keyTile, gather, chunk,
                                 /*compact=*/true, operandType);
}

/// What the NVPTX lowering is built for; C-nvptx in docs/Spec.md.
LogicalResult checkGpuLimits(Operation *op, ParamsAttr params, int64_t heads,
                             Value q, ArrayRef<Value> headDims) {
  auto refuse = [&](const Twine &what, const Twine &value) {
    return op->emitOpError() << "not implemented for NVPTX: expected " << what
                             << ", but got " << value;
  };
  if (int64_t c = params.getBlockSize();
      c < 16 || c > 256 || !llvm::isPowerOf2_64(c))
    return refuse("'block_size' to be 16, 32, 64, 128 or 256", Twine(c));
  if (int64_t g = params.getFanout(); g > 8)
    return refuse("'fanout' to be at most 8", Twine(g));
  if (int64_t k = params.getTopk(); k > 128)
    return refuse("'topk' to be at most 128", Twine(k));
  if (int64_t w = params.getBeamWidth(); w > 512)
    return refuse("'beam' to be at most 512", Twine(w));
  if (int64_t a = params.getLeafAtoms(); params.usesPreScore() && a > 16)
    return refuse("'leaf_atoms' to be at most 16", Twine(a));
  if (heads > 64)
    return refuse("at most 64 query heads per kv head", Twine(heads));
  for (Value value : headDims)
    if (int64_t d = cast<ShapedType>(value.getType()).getShape().back();
        d % 8 != 0 || d > 256)
      return refuse("head dimensions that are multiples of 8 up to 256",
                    Twine(d));
  if (q && cast<ShapedType>(q.getType()).getElementType().isF32())
    return refuse("queries of f16 or bf16", "f32");
  return success();
}

struct SetLoweringConfig
    : pisa::impl::PisaSetLoweringConfigPassBase<SetLoweringConfig> {
  using PisaSetLoweringConfigPassBase::PisaSetLoweringConfigPassBase;

  void runOnOperation() override {
    if (target != "cpu" && target != "nvptx") {
      getOperation()->emitError()
          << "expected 'target' to be cpu or nvptx, but got '" << target << "'";
      return signalPassFailure();
    }
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512) {
      getOperation()->emitError()
          << "expected 'vector-bits' to be 128, 256 or 512, but got "
          << vectorBits.getValue();
      return signalPassFailure();
    }
    WalkResult result = getOperation()->walk([&](Operation *op) {
      Value q, k;
      ParamsAttr params;
      SmallVector<Value> headDims;
      if (auto build = dyn_cast<BuildPyramidOp>(op)) {
        params = build.getParams();
        headDims = {build.getK()};
      } else if (auto route = dyn_cast<RouteOp>(op)) {
        std::tie(params, q, k) =
            std::tuple(route.getParams(), route.getQ(), route.getK());
        headDims = {q};
      } else if (auto attention = dyn_cast<AttentionOp>(op)) {
        std::tie(params, q, k) = std::tuple(attention.getParams(),
                                            attention.getQ(), attention.getK());
        headDims = {q, attention.getV()};
      }
      if (!params)
        return WalkResult::advance();
      auto numHeads = [](Value x) {
        return cast<ShapedType>(x.getType()).getDimSize(1);
      };
      int64_t heads = q ? numHeads(q) / numHeads(k) : 1;
      bool onGpu = target == "nvptx";
      if (onGpu && failed(checkGpuLimits(op, params, heads, q, headDims)))
        return WalkResult::interrupt();
      if (op->hasAttr("lowering_config"))
        return WalkResult::advance();
      Type operandType =
          q ? cast<ShapedType>(q.getType()).getElementType() : Type();
      op->setAttr("lowering_config",
                  onGpu ? getGpuConfig(op, params, heads, operandType, taskRows,
                                       partialBytes)
                        : getConfig(op, params, heads, vectorBits));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
