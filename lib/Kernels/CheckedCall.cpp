//===- CheckedCall.cpp - The tensors of a call, all of them ----*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace pisa;
using Use = ArgumentChecker::Use;
using Layout = ArgumentChecker::Layout;

CheckedCall::CheckedCall(const KernelSpec &spec, const KernelArguments &given,
                         Memory memory)
    : spec(spec), given(given), check(memory, given.headsInside) {
  check.bind(Axis::Hq, spec.heads, "as the kernel was made for");
  check.bind(Axis::Hkv, spec.kvHeads, "as the kernel was made for");
  check.bind(Axis::D, spec.headDim, "as the kernel was made for");
  check.bind(Axis::Dv, spec.valueDim, "as the kernel was made for");
  check.bind(Axis::K, attends() ? spec.listWidth : spec.params.topk,
             "as the kernel was made for");
  check.bind(Axis::A, spec.params.leafAtoms, "which is leaf_atoms");
}

llvm::Error CheckedCall::checkInputs() {
  DLDataType dtype = getDLType(spec.dtype);
  if (routes() || attends())
    q = check.tensor("q", given.q, dtype,
                     {Axis::B, Axis::Hq, Axis::Tq, Axis::D}, Use::Input,
                     Layout::Heads);
  k = check.tensor("k", given.k, dtype, {Axis::B, Axis::Hkv, Axis::Tk, Axis::D},
                   Use::Input, Layout::Heads);
  if (attends())
    v = check.tensor("v", given.v, dtype,
                     {Axis::B, Axis::Hkv, Axis::Tk, Axis::Dv}, Use::Input,
                     Layout::Heads);
  if (check.failed())
    return check.takeError();
  batch = check.getSize(Axis::B);
  keys = check.getSize(Axis::Tk);
  // A length of each sequence is kept, however the tensors are strided.
  constexpr int64_t mostSequences = 1 << 24;
  if (batch > mostSequences)
    return makeError(ErrorKind::InvalidValue,
                     "expected B to be at most " + llvm::Twine(mostSequences) +
                         ", but got " + llvm::Twine(batch));
  if (keys > std::numeric_limits<int32_t>::max())
    return makeError(
        ErrorKind::InvalidValue,
        "expected at most 2147483647 keys in a sequence, but got " +
            llvm::Twine(keys));
  return llvm::Error::success();
}

llvm::Error CheckedCall::checkDefaultStart() {
  // Lengths that vary may leave queries before the first key, which see none; a
  // whole tensor may not.
  int64_t queries = check.getSize(Axis::Tq);
  if (spec.params.causal && !given.kLen && keys > 0 && queries > keys)
    return makeError(ErrorKind::InvalidValue,
                     "expected Tq to be at most Tk = " + llvm::Twine(keys) +
                         " in causal attention without q_start, but got " +
                         llvm::Twine(queries));
  return llvm::Error::success();
}

llvm::Error CheckedCall::checkStart(size_t sequence, int64_t start) {
  if (start % spec.params.queryBlock == 0)
    return llvm::Error::success();
  return makeError(ErrorKind::InvalidValue,
                   "expected q_start[" + llvm::Twine(sequence) +
                       "] to be a multiple of query_block = " +
                       llvm::Twine(spec.params.queryBlock) + ", but got " +
                       llvm::Twine(start));
}

llvm::Error
CheckedCall::readPositions(llvm::SmallVectorImpl<int32_t> &lengths,
                           llvm::SmallVectorImpl<int32_t> &starts) {
  if (given.kLen)
    check.perSequence("k_len", given.kLen, 0, keys, lengths);
  else
    lengths.assign(batch, static_cast<int32_t>(keys));
  if (!routes() && !attends())
    return llvm::Error::success();
  if (!spec.hasQStart) {
    check.refuse("q_start", given.qStart,
                 "of a kernel that was made without it");
  } else if (given.qStart) {
    check.perSequence("q_start", given.qStart,
                      std::numeric_limits<int32_t>::min(),
                      std::numeric_limits<int32_t>::max(), starts);
  } else {
    // The last query stands at the last key.
    if (auto error = checkDefaultStart())
      return error;
    int64_t queries = check.getSize(Axis::Tq);
    for (int32_t length : lengths)
      starts.push_back(static_cast<int32_t>(length - queries));
  }
  for (auto [b, start] : llvm::enumerate(starts))
    if (auto error = checkStart(b, start))
      return error;
  return llvm::Error::success();
}

llvm::Error CheckedCall::keepPositions() {
  if (given.kLen)
    kLen = check.tensor("k_len", given.kLen, kInt32, {Axis::B}, Use::Input);
  if (!routes() && !attends())
    return llvm::Error::success();
  if (!spec.hasQStart) {
    check.refuse("q_start", given.qStart,
                 "of a kernel that was made without it");
  } else if (given.qStart) {
    qStart =
        check.tensor("q_start", given.qStart, kInt32, {Axis::B}, Use::Input);
  } else {
    if (auto error = checkDefaultStart())
      return error;
    if (!given.kLen && batch > 0)
      return checkStart(0, keys - check.getSize(Axis::Tq));
  }
  return llvm::Error::success();
}

llvm::Error CheckedCall::checkOthers() {
  const KernelParams &params = spec.params;
  DLDataType dtype = getDLType(spec.dtype);
  DLDataType summary = getDLType(spec.getSummaryType());
  if (routes() || attends()) {
    if (std::isnan(given.scale))
      return makeError(ErrorKind::InvalidValue,
                       "expected softmax_scale to be a number, but got NaN");
    queryBlocks =
        llvm::divideCeilSigned(check.getSize(Axis::Tq), params.queryBlock);
    check.bind(Axis::NQ, queryBlocks, "which is ceil(Tq / query_block)");
  }
  mlir::pisa::PyramidLayout layout{params.blockSize, params.fanout};
  leaves = layout.getNumLeaves(keys);
  rows = layout.getNumRows(keys);
  check.bind(Axis::Rows, rows, "the nodes over Tk keys");
  check.bind(Axis::Levels, layout.getNumLevels(keys),
             "the levels over Tk keys");
  check.bind(Axis::Leaves, leaves, "which is ceil(Tk / block_size)");

  // Between the functions, or given by the caller: the pyramid and the lists.
  if (isWhole()) {
    const char *inside = "of the whole forward pass, which has its own";
    check.refuse("pyramid", given.pyramid, inside);
    check.refuse("atoms", given.atoms, inside);
    check.refuse("outlier", given.outlier, inside);
  } else if (builds() || routes()) {
    Use use = builds() ? Use::Output : Use::Input;
    pyramid = check.tensor("pyramid", given.pyramid, summary,
                           {Axis::B, Axis::Hkv, Axis::Rows, Axis::D}, use);
    if (spec.usesAtoms()) {
      atoms = check.tensor("atoms", given.atoms, summary,
                           {Axis::B, Axis::Hkv, Axis::Leaves, Axis::A, Axis::D},
                           use);
      outlier = check.tensor("outlier", given.outlier, kInt32,
                             {Axis::B, Axis::Hkv, Axis::Leaves}, use);
    } else {
      check.refuse("atoms", given.atoms, "without rerank");
      check.refuse("outlier", given.outlier, "without rerank");
    }
  }
  if (!(isWhole() && !given.indices) && (routes() || attends()))
    indices = check.tensor("indices", given.indices, kInt32,
                           {Axis::B, Axis::Hkv, Axis::NQ, Axis::K},
                           routes() ? Use::Output : Use::Input);

  // Outputs.
  auto output = [&](bool wanted, const char *name, const DLTensor *tensor,
                    DLDataType type, llvm::ArrayRef<Axis> axes,
                    Layout order = Layout::Plain) {
    if (wanted)
      return check.tensor(name, tensor, type, axes, Use::Output, order);
    check.refuse(name, tensor, "of a kernel that was made without it");
    return CpuArgument();
  };
  openSums =
      output(builds() && spec.wantOpenSums, "open_sums", given.openSums,
             kFloat32, {Axis::B, Axis::Hkv, Axis::Levels, Axis::D});
  count = output(routes() && spec.wantCount, "count", given.count, kInt32,
                 {Axis::B, Axis::Hkv, Axis::NQ});
  scores = output(routes() && spec.wantScores, "scores", given.scores, kFloat32,
                  {Axis::B, Axis::Hkv, Axis::NQ, Axis::K});
  out = output(attends(), "out", given.out, dtype,
               {Axis::B, Axis::Hq, Axis::Tq, Axis::Dv}, Layout::Heads);
  lse = output(attends() && spec.wantLse, "lse", given.lse, kFloat32,
               {Axis::B, Axis::Hq, Axis::Tq});
  return check.takeError();
}
