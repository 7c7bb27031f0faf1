//===- Verify.cpp - Comparison of a problem's outputs with the oracle -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Harness/OpProblem.h"

#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

using namespace pisa;
using npy::Array;

static std::vector<int32_t> toInts(const Array &array) {
  std::vector<int32_t> values(array.numElements());
  std::memcpy(values.data(), array.data.data(),
              values.size() * sizeof(int32_t));
  return values;
}

/// Half of the distance between neighbours at 1: 2^-8, 2^-11, 2^-24.
static double roundingError(Array::Type type) {
  switch (type) {
  case Array::Type::BF16:
    return 0x1p-8;
  case Array::Type::F16:
    return 0x1p-11;
  default:
    return 0x1p-24;
  }
}

namespace {
/// The first value of two arrays that differs by more than its tolerance.
struct Comparison {
  int64_t wrong = 0;
  double maxError = 0;
  std::string first;

  void add(const char *what, int64_t i, double got, double want,
           double allowed) {
    if (std::isnan(got) && std::isnan(want))
      return;
    double error = got == want ? 0 : std::abs(got - want);
    if (!(error <= maxError))
      maxError = error;
    if (error <= allowed)
      return;
    if (wrong++ == 0)
      first = llvm::formatv("{0} element {1}: expected {2:e8}, but got {3:e8}",
                            what, i, want, got);
  }
};
} // namespace

Verdict pisa::verifyPyramid(const OpProblem &problem, const OpBuffers &buffers,
                            const VerifyOptions &options) {
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> want = oracle::buildPyramid(problem.shape, k.data());
  std::vector<double> got = npy::toDoubles(buffers.pyramid);
  // One rounding to the summary type, a float32 sum before it: its error grows
  // with the keys below a node, but stays far below 1e-5 of their size.
  double largest = 0;
  for (double value : k)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  Comparison comparison;
  double eps = roundingError(problem.getSummaryType());
  // Subnormals of f16 lose relative precision.
  double floor = problem.getSummaryType() == Array::Type::F16 ? 0x1p-24 : 0;
  auto allowed = [&](double value) {
    return options.toleranceScale *
           (eps * std::abs(value) + 1e-5 * largest + floor);
  };
  for (size_t i = 0; i < want.size(); ++i)
    comparison.add("pyramid", i, got[i], want[i], allowed(want[i]));
  if (problem.usesAtoms()) {
    std::vector<double> atoms;
    std::vector<int32_t> outlier;
    oracle::buildAtoms(problem.shape, k.data(), atoms, outlier);
    std::vector<double> gotAtoms = npy::toDoubles(buffers.atoms);
    std::vector<int32_t> gotOutlier = toInts(buffers.outlier);
    // Where float32 picks another outlier among near-equals, all atoms of that
    // leaf are others too; a few are expected and are not wrong.
    int64_t perLeaf = problem.shape.params.leafAtoms * problem.shape.headDim;
    int64_t others = 0;
    for (size_t leaf = 0; leaf < outlier.size(); ++leaf) {
      if (outlier[leaf] != gotOutlier[leaf]) {
        ++others;
        continue;
      }
      for (int64_t i = leaf * perLeaf; i < int64_t(leaf + 1) * perLeaf; ++i)
        comparison.add("atoms", i, gotAtoms[i], atoms[i], allowed(atoms[i]));
    }
    int64_t most = 1 + static_cast<int64_t>(outlier.size()) / 100;
    if (others > most)
      return {false,
              llvm::formatv("pyramid: {0} of {1} outliers differ, at most "
                            "{2} may",
                            others, outlier.size(), most)};
  }
  if (comparison.wrong)
    return {false, llvm::formatv("pyramid: {0} wrong; {1}", comparison.wrong,
                                 comparison.first)};
  return {true, llvm::formatv("pyramid: {0} values right, max error {1:e2}",
                              want.size(), comparison.maxError)};
}

namespace {
/// A run of query blocks that is checked.
struct Span {
  int64_t first, count;
};
} // namespace

/// All query blocks of a short sequence, or a sample of a long one's.
static std::vector<Span> chooseSpans(const OpProblem &problem,
                                     const VerifyOptions &options) {
  const oracle::Problem &s = problem.shape;
  int64_t blocks = s.numQueryBlocks();
  if (s.queryLength <= options.allQueriesUpTo)
    return {{0, blocks}};
  std::set<int64_t> chosen = {0, blocks - 1};
  auto add = [&](int64_t query) {
    if (query >= 0 && query < s.queryLength)
      chosen.insert(query / s.params.queryBlock);
  };
  // Positions of batch 0; the others' boundaries are hit by chance.
  int64_t start = s.batch == 0 ? 0
                  : s.qStart   ? (*s.qStart)[0]
                               : s.kLen[0] - s.queryLength;
  for (int64_t span = s.params.blockSize; span < s.keyLength;
       span *= s.params.fanout)
    for (int64_t distance : {-1, 0, 1})
      add(span + distance - start);
  uint64_t state = 1;
  while (static_cast<int64_t>(chosen.size()) < std::min<int64_t>(blocks, 256)) {
    state = state * 6364136223846793005 + 1442695040888963407;
    chosen.insert(static_cast<int64_t>(state >> 33) % blocks);
  }
  std::vector<Span> spans;
  for (int64_t block : chosen)
    spans.push_back({block, 1});
  return spans;
}

/// The problem of a span's queries alone: the same keys, other positions.
static oracle::Problem getSpanProblem(const oracle::Problem &s, Span span) {
  oracle::Problem part = s;
  int64_t first = span.first * s.params.queryBlock;
  part.queryLength =
      std::min(span.count * s.params.queryBlock, s.queryLength - first);
  if (s.qStart || s.params.causal) {
    part.qStart.emplace();
    for (int64_t b = 0; b < s.batch; ++b)
      part.qStart->push_back(
          (s.qStart ? (*s.qStart)[b] : s.kLen[b] - s.queryLength) + first);
  }
  return part;
}

/// Rows [first, first + count) of dimension 2 of a [B, H, T, W] array.
template <typename T>
static std::vector<T> sliceRows(const T *values, int64_t outer, int64_t length,
                                int64_t width, int64_t first, int64_t count) {
  std::vector<T> slice;
  slice.reserve(outer * count * width);
  for (int64_t i = 0; i < outer; ++i) {
    const T *begin = values + (i * length + first) * width;
    slice.insert(slice.end(), begin, begin + count * width);
  }
  return slice;
}

Verdict pisa::verifyRoute(const OpProblem &problem, const OpBuffers &buffers,
                          const VerifyOptions &options) {
  const oracle::Problem &s = problem.shape;
  double relTol = 1e-5 * options.toleranceScale;
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> pyramid = npy::toDoubles(buffers.pyramid);
  std::vector<double> atoms = npy::toDoubles(buffers.atoms);
  std::vector<double> scores = npy::toDoubles(buffers.scores);
  std::vector<int32_t> outlier = toInts(buffers.outlier);
  std::vector<int32_t> indices = toInts(buffers.indices);
  std::vector<int32_t> count = toInts(buffers.count);
  int64_t width = s.params.topk, blocks = s.numQueryBlocks();

  // The count is the number of entries, in every row.
  for (size_t row = 0; row < count.size(); ++row) {
    auto *first = indices.data() + row * width;
    int64_t entries =
        std::count_if(first, first + width, [](int32_t e) { return e >= 0; });
    if (entries != count[row])
      return {false,
              llvm::formatv("route: count of row {0}: expected {1}, but got "
                            "{2}",
                            row, entries, count[row])};
  }

  int64_t rows = 0, tieRows = 0;
  Comparison comparison;
  for (Span span : chooseSpans(problem, options)) {
    oracle::Problem part = getSpanProblem(s, span);
    std::vector<double> partQ =
        sliceRows(q.data(), s.batch * s.heads, s.queryLength, s.headDim,
                  span.first * s.params.queryBlock, part.queryLength);
    std::vector<int32_t> partIndices =
        sliceRows(indices.data(), s.batch * s.kvHeads, blocks, width,
                  span.first, span.count);
    oracle::SelectionReport report = oracle::checkSelection(
        part, partQ.data(), k.data(), pyramid.data(), atoms.data(),
        outlier.data(), partIndices.data(), relTol);
    if (report.wrongRows)
      return {false,
              llvm::formatv("route: {0} of {1} rows from query block {2} on "
                            "wrong; {3}",
                            report.wrongRows, report.rows, span.first,
                            report.firstError)};
    rows += report.rows;
    tieRows += report.tieRows;
    if (!problem.wantScores)
      continue;
    // On the oracle's own selection, where ours is the same.
    oracle::Selection want =
        oracle::select(part, partQ.data(), k.data(), pyramid.data(),
                       atoms.data(), outlier.data());
    std::vector<double> partScores =
        sliceRows(scores.data(), s.batch * s.kvHeads, blocks, width, span.first,
                  span.count);
    for (size_t i = 0; i < partScores.size(); i += width) {
      if (!std::equal(want.indices.begin() + i,
                      want.indices.begin() + i + width,
                      partIndices.begin() + i))
        continue;
      for (size_t j = i; j < i + width; ++j)
        comparison.add("scores", j, partScores[j], want.scores[j],
                       relTol * s.groupSize() * s.params.queryBlock *
                           std::max(1.0, std::abs(want.scores[j])));
    }
  }
  if (comparison.wrong)
    return {false, llvm::formatv("route: {0} scores wrong; {1}",
                                 comparison.wrong, comparison.first)};
  return {true,
          llvm::formatv("route: {0} rows right, {1} of them inside the tie "
                        "band",
                        rows, tieRows)};
}

/// eps of docs/Spec.md, "Attention tolerance".
static double attentionEps(const OpProblem &problem, int64_t listWidth) {
  switch (problem.dtype) {
  case Array::Type::BF16:
    return 0x1p-8;
  case Array::Type::F16:
    return 0x1p-11;
  default: {
    double keys =
        static_cast<double>(listWidth) * problem.shape.params.blockSize;
    return 0x1p-23 * std::sqrt(std::max(1.0, keys));
  }
  }
}

Verdict pisa::verifyAttention(const OpProblem &problem,
                              const OpBuffers &buffers,
                              const VerifyOptions &options) {
  const oracle::Problem &s = problem.shape;
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> v = npy::toDoubles(buffers.v);
  std::vector<double> gotOut = npy::toDoubles(buffers.out);
  std::vector<double> gotLse = npy::toDoubles(buffers.lse);
  std::vector<int32_t> indices = toInts(buffers.indices);
  int64_t width = buffers.indices.shape.back(), blocks = s.numQueryBlocks();
  double eps = attentionEps(problem, width) * options.toleranceScale;

  oracle::AttentionReport worst;
  int64_t values = 0, worstFirst = 0;
  for (Span span : chooseSpans(problem, options)) {
    oracle::Problem part = getSpanProblem(s, span);
    int64_t first = span.first * s.params.queryBlock, rows = part.queryLength;
    auto slice = [&](const std::vector<double> &array, int64_t rowWidth) {
      return sliceRows(array.data(), s.batch * s.heads, s.queryLength, rowWidth,
                       first, rows);
    };
    std::vector<double> partQ = slice(q, s.headDim);
    std::vector<int32_t> partIndices =
        sliceRows(indices.data(), s.batch * s.kvHeads, blocks, width,
                  span.first, span.count);
    std::vector<double> out(s.batch * s.heads * rows * s.valueDim);
    std::vector<double> lse(s.batch * s.heads * rows);
    oracle::attend(part, partQ.data(), k.data(), v.data(), partIndices.data(),
                   width, out.data(), lse.data());
    oracle::AttentionReport report = oracle::checkAttention(
        part, v.data(), partIndices.data(), width, out.data(), lse.data(),
        slice(gotOut, s.valueDim).data(), slice(gotLse, 1).data(), eps);
    if (report.wrong)
      return {false,
              llvm::formatv("attention: {0} of {1} values from query {2} on "
                            "wrong; {3}",
                            report.wrong, report.elements, first,
                            report.firstError)};
    values += report.elements;
    if (!(report.maxError <= worst.maxError) || worst.elements == 0) {
      worst = report;
      worstFirst = first;
    }
  }
  return {true,
          llvm::formatv(
              "attention: {0} values right, max error {1:e2} of {2:e2} "
              "allowed at batch {3}, head {4}, query {5}, column {6}",
              values, worst.maxError, worst.maxAllowed, worst.worst[0],
              worst.worst[1], worst.worst[2] + worstFirst, worst.worst[3])};
}

//===----------------------------------------------------------------------===//
// The oracle as a target
//===----------------------------------------------------------------------===//

static Array fromInts(const std::vector<int32_t> &values,
                      std::vector<int64_t> shape) {
  Array array;
  array.type = Array::Type::I32;
  array.shape = std::move(shape);
  array.data.resize(values.size() * sizeof(int32_t));
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

void pisa::referencePyramid(const OpProblem &problem, OpBuffers &buffers) {
  std::vector<double> k = npy::toDoubles(buffers.k);
  buffers.pyramid =
      npy::fromDoubles(oracle::buildPyramid(problem.shape, k.data()),
                       buffers.pyramid.shape, problem.getSummaryType());
  if (!problem.usesAtoms())
    return;
  std::vector<double> atoms;
  std::vector<int32_t> outlier;
  oracle::buildAtoms(problem.shape, k.data(), atoms, outlier);
  buffers.atoms =
      npy::fromDoubles(atoms, buffers.atoms.shape, problem.getSummaryType());
  buffers.outlier = fromInts(outlier, buffers.outlier.shape);
}

void pisa::referenceRoute(const OpProblem &problem, OpBuffers &buffers) {
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> pyramid = npy::toDoubles(buffers.pyramid);
  std::vector<double> atoms = npy::toDoubles(buffers.atoms);
  std::vector<int32_t> outlier = toInts(buffers.outlier);
  oracle::Selection selection =
      oracle::select(problem.shape, q.data(), k.data(), pyramid.data(),
                     atoms.data(), outlier.data());
  buffers.indices = fromInts(selection.indices, buffers.indices.shape);
  buffers.count = fromInts(selection.count, buffers.count.shape);
  buffers.scores = npy::fromDoubles(selection.scores, buffers.scores.shape,
                                    Array::Type::F32);
}

void pisa::referenceAttention(const OpProblem &problem, OpBuffers &buffers) {
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> v = npy::toDoubles(buffers.v);
  std::vector<int32_t> indices = toInts(buffers.indices);
  std::vector<double> out(buffers.out.numElements());
  std::vector<double> lse(buffers.lse.numElements());
  oracle::attend(problem.shape, q.data(), k.data(), v.data(), indices.data(),
                 buffers.indices.shape.back(), out.data(), lse.data());
  buffers.out = npy::fromDoubles(out, buffers.out.shape, problem.dtype);
  buffers.lse = npy::fromDoubles(lse, buffers.lse.shape, Array::Type::F32);
}

int64_t pisa::countPairs(const OpProblem &problem, const OpBuffers &buffers) {
  const oracle::Problem &s = problem.shape;
  std::vector<int32_t> indices = toInts(buffers.indices);
  int64_t width = buffers.indices.shape.back();
  int64_t queryBlocks = s.numQueryBlocks(), pairs = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    int64_t kLen = s.kLen[b];
    int64_t start = s.qStart ? (*s.qStart)[b] : kLen - s.queryLength;
    for (int64_t h = 0; h < s.kvHeads; ++h)
      for (int64_t t = 0; t < s.queryLength; ++t) {
        int64_t end = s.params.causal ? std::min(kLen, start + t + 1) : kLen;
        int64_t row =
            (b * s.kvHeads + h) * queryBlocks + t / s.params.queryBlock;
        for (int64_t i = 0; i < width; ++i) {
          int64_t first = indices[row * width + i] * s.params.blockSize;
          if (first >= 0)
            pairs += std::clamp<int64_t>(end - first, 0, s.params.blockSize);
        }
      }
  }
  return pairs * s.groupSize();
}
