//===- PisaAttrs.cpp - Attribute verifiers and defaults ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Dialect/Pisa/IR/Pisa.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pisa;

// A list of g W candidates is ranked on the stack of a task, and inner loops
// unroll over children and atoms: beyond these bounds neither is sensible, and
// a hostile value is refused here and not by the allocator.
static constexpr int64_t kMaxParameter = 4096;
static constexpr int64_t kMaxFanout = 64;
static constexpr int64_t kMaxLeafAtoms = 256;

static int64_t getForcedCount(int64_t blockSize, int64_t queryBlock,
                              int64_t sinkBlocks, int64_t localBlocks) {
  return sinkBlocks + localBlocks +
         llvm::divideCeilSigned(queryBlock - 1, blockSize);
}

int64_t ParamsAttr::getForcedCount() const {
  return ::getForcedCount(getBlockSize(), getQueryBlock(), getSinkBlocks(),
                          getLocalBlocks());
}

Type ParamsAttr::getSummaryType(Type keyType) const {
  return getSummaryDtype() ? getSummaryDtype() : keyType;
}

LogicalResult ParamsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t blockSize, int64_t fanout,
                                 int64_t topk, std::optional<int64_t> beam,
                                 std::optional<int64_t> rerank,
                                 int64_t leafAtoms, int64_t queryBlock,
                                 int64_t sinkBlocks, int64_t localBlocks,
                                 bool causal, Type summaryDtype) {
  // params-1
  auto inRange = [&](StringRef name, int64_t value, int64_t least,
                     int64_t most = kMaxParameter) -> LogicalResult {
    if (value >= least && value <= most)
      return success();
    return emitError() << "expected '" << name << "' to be in [" << least
                       << ", " << most << "], but got " << value;
  };
  if (failed(inRange("block_size", blockSize, 1)) ||
      failed(inRange("fanout", fanout, 2, kMaxFanout)) ||
      failed(inRange("topk", topk, 1)) ||
      failed(inRange("beam", beam.value_or(topk), 1)) ||
      failed(inRange("query_block", queryBlock, 1)) ||
      failed(inRange("sink_blocks", sinkBlocks, 0)) ||
      failed(inRange("local_blocks", localBlocks, 0)) ||
      failed(inRange("leaf_atoms", leafAtoms, 1, kMaxLeafAtoms)))
    return failure();
  // params-2
  if (causal && localBlocks < 1)
    return emitError() << "expected 'local_blocks' to be at least 1 in causal "
                          "attention, but got "
                       << localBlocks;
  // params-3
  int64_t forced =
      ::getForcedCount(blockSize, queryBlock, sinkBlocks, localBlocks);
  if (topk < forced)
    return emitError() << "expected 'topk' to be at least " << forced
                       << ", the number of forced blocks, but got " << topk;
  // params-4
  if (beam && *beam < topk)
    return emitError() << "expected 'beam' to be at least 'topk' = " << topk
                       << ", but got " << *beam;
  // params-5
  int64_t mostLeaves = fanout * beam.value_or(topk);
  if (rerank && *rerank != 0 && (*rerank < topk || *rerank > mostLeaves))
    return emitError() << "expected 'rerank' to be 0 or in ['topk', 'fanout' * "
                          "'beam'] = ["
                       << topk << ", " << mostLeaves << "], but got "
                       << *rerank;
  // params-6
  if (rerank && blockSize % leafAtoms != 0)
    return emitError() << "expected 'leaf_atoms' to divide 'block_size' = "
                       << blockSize << ", but got " << leafAtoms;
  // params-7
  if (summaryDtype &&
      !(summaryDtype.isF32() || summaryDtype.isF16() || summaryDtype.isBF16()))
    return emitError()
           << "expected 'summary_dtype' to be f32, f16 or bf16, but "
              "got "
           << summaryDtype;
  return success();
}

LogicalResult
LoweringConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           int64_t queryTile, int64_t leafTile, int64_t rowTile,
                           int64_t columnTile, int64_t keyTile,
                           int64_t gather, int64_t chunk,
                           bool /*compact*/, Type operandType) {
  auto positive = [&](StringRef name, int64_t value) -> LogicalResult {
    constexpr int64_t most = 1 << 20;
    if (value >= 1 && value <= most)
      return success();
    return emitError() << "expected '" << name << "' to be in [1, " << most
                       << "], but got " << value;
  };
  for (auto [name, value] : {std::pair("key_tile", keyTile),
                             {"gather", gather},
                             {"chunk", chunk}})
    if (value < 0 || value > 1 << 20)
      return emitError() << "expected '" << name << "' to be in [0, "
                         << (1 << 20) << "], but got " << value;
  if (operandType && !operandType.isF16() && !operandType.isBF16())
    return emitError() << "expected 'operand_type' to be f16 or bf16, but got "
                       << operandType;
  return failure(failed(positive("query_tile", queryTile)) ||
                 failed(positive("leaf_tile", leafTile)) ||
                 failed(positive("row_tile", rowTile)) ||
                 failed(positive("column_tile", columnTile)));
}
