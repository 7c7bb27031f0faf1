//===- Verify.cpp - Comparison of a problem's outputs with the oracle -*- C++ -*-===//
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

using namespace pisa;
using npy::Array;

static std::vector<int32_t> toInts(const Array &array) {
  std::vector<int32_t> values(array.numElements());
  std::memcpy(values.data(), array.data.data(), values.size() * sizeof(int32_t));
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

  void add(const char *what, int64_t i, double got, double want, double allowed) {
    if (std::isnan(got) && std::isnan(want))
      return;
    double error = got == want ? 0 : std::abs(got - want);
    if (!(error <= maxError))
      maxError = error;
    if (error <= allowed)
      return;
    if (wrong++ == 0)
      first = llvm::formatv("{0} element {1}: expected {2}, but got {3}", what, i,
                            want, got);
  }
};
} // namespace

Verdict pisa::verifyPyramid(const OpProblem &problem, const OpBuffers &buffers) {
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
  for (size_t i = 0; i < want.size(); ++i)
    comparison.add("pyramid", i, got[i], want[i],
                   eps * std::abs(want[i]) + 1e-5 * largest + floor);
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
        comparison.add("atoms", i, gotAtoms[i], atoms[i],
                       eps * std::abs(atoms[i]) + 1e-5 * largest + floor);
    }
    int64_t allowed = 1 + static_cast<int64_t>(outlier.size()) / 100;
    if (others > allowed)
      return {false, llvm::formatv("pyramid: {0} of {1} outliers differ, at most "
                                   "{2} may",
                                   others, outlier.size(), allowed)};
  }
  if (comparison.wrong)
    return {false, llvm::formatv("pyramid: {0} wrong; {1}", comparison.wrong,
                                 comparison.first)};
  return {true, llvm::formatv("pyramid: {0} values right, max error {1:e2}",
                              want.size(), comparison.maxError)};
}

Verdict pisa::verifyRoute(const OpProblem &problem, const OpBuffers &buffers,
                          double relTol) {
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> pyramid = npy::toDoubles(buffers.pyramid);
  std::vector<double> atoms = npy::toDoubles(buffers.atoms);
  std::vector<int32_t> outlier = toInts(buffers.outlier);
  std::vector<int32_t> indices = toInts(buffers.indices);
  oracle::SelectionReport report = oracle::checkSelection(
      problem.shape, q.data(), k.data(), pyramid.data(), atoms.data(),
      outlier.data(), indices.data(), relTol);
  if (report.wrongRows)
    return {false, llvm::formatv("route: {0} of {1} rows wrong; {2}",
                                 report.wrongRows, report.rows,
                                 report.firstError)};
  // The count is the number of entries.
  std::vector<int32_t> count = toInts(buffers.count);
  int64_t width = problem.shape.params.topk;
  for (size_t row = 0; row < count.size(); ++row) {
    auto *first = indices.data() + row * width;
    int64_t entries = std::count_if(first, first + width,
                                    [](int32_t e) { return e >= 0; });
    if (entries != count[row])
      return {false, llvm::formatv("route: count of row {0}: expected {1}, but got "
                                   "{2}",
                                   row, entries, count[row])};
  }
  if (problem.wantScores) {
    // On the oracle's own selection, where ours is the same.
    oracle::Selection want = oracle::select(problem.shape, q.data(), k.data(),
                                            pyramid.data(), atoms.data(),
                                            outlier.data());
    std::vector<double> scores = npy::toDoubles(buffers.scores);
    Comparison comparison;
    for (size_t row = 0; row < count.size(); ++row) {
      if (std::memcmp(indices.data() + row * width,
                      want.indices.data() + row * width,
                      width * sizeof(int32_t)) != 0)
        continue;
      for (int64_t i = row * width; i < int64_t(row + 1) * width; ++i)
        comparison.add("scores", i, scores[i], want.scores[i],
                       relTol * problem.shape.groupSize() *
                           problem.shape.params.queryBlock *
                           std::max(1.0, std::abs(want.scores[i])));
    }
    if (comparison.wrong)
      return {false, llvm::formatv("route: {0} scores wrong; {1}",
                                   comparison.wrong, comparison.first)};
  }
  return {true, llvm::formatv("route: {0} rows right, {1} of them inside the tie "
                              "band",
                              report.rows, report.tieRows)};
}

Verdict pisa::verifyAttention(const OpProblem &problem,
                              const OpBuffers &buffers) {
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> v = npy::toDoubles(buffers.v);
  std::vector<int32_t> indices = toInts(buffers.indices);
  int64_t width = buffers.indices.shape.back();
  const oracle::Problem &s = problem.shape;
  std::vector<double> out(s.batch * s.heads * s.queryLength * s.valueDim);
  std::vector<double> lse(s.batch * s.heads * s.queryLength);
  oracle::attend(s, q.data(), k.data(), v.data(), indices.data(), width,
                 out.data(), lse.data());
  // docs/Spec.md, "Attention tolerance".
  double eps = problem.dtype == Array::Type::BF16  ? 0x1p-8
               : problem.dtype == Array::Type::F16 ? 0x1p-11
                                                   : 0x1p-23 *
                                                         std::sqrt(double(std::max<
                                                                   int64_t>(
                                                             1, width *
                                                                    s.params
                                                                        .blockSize)));
  std::vector<double> gotOut = npy::toDoubles(buffers.out);
  std::vector<double> gotLse = npy::toDoubles(buffers.lse);
  oracle::AttentionReport report = oracle::checkAttention(
      s, v.data(), indices.data(), width, out.data(), lse.data(), gotOut.data(),
      gotLse.data(), eps);
  if (report.wrong)
    return {false, llvm::formatv("attention: {0} of {1} values wrong; {2}",
                                 report.wrong, report.elements,
                                 report.firstError)};
  return {true,
          llvm::formatv("attention: {0} values right, max error {1:e2} of {2:e2} "
                        "allowed at batch {3}, head {4}, query {5}, column {6}",
                        report.elements, report.maxError, report.maxAllowed,
                        report.worst[0], report.worst[1], report.worst[2],
                        report.worst[3])};
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
        int64_t row = (b * s.kvHeads + h) * queryBlocks + t / s.params.queryBlock;
        for (int64_t i = 0; i < width; ++i) {
          int64_t first = indices[row * width + i] * s.params.blockSize;
          if (first >= 0)
            pairs += std::clamp<int64_t>(end - first, 0, s.params.blockSize);
        }
      }
  }
  return pairs * s.groupSize();
}
