//===- Cases.cpp - Problems that a sweep runs -------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

using namespace pisa;
using namespace pisa::sweep;
using npy::Array;

namespace {
/// splitmix64: the same cases on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high].
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % uint64_t(high - low + 1));
  }
  bool one(int64_t chances) { return in(1, chances) == 1; }
  template <typename T, size_t N> T pick(const T (&values)[N]) {
    return values[in(0, N - 1)];
  }

private:
  uint64_t state;
};

struct Heads {
  int64_t query, kv;
};
constexpr Heads kHeads[] = {{1, 1}, {4, 4},  {8, 2},  {12, 4}, {6, 2},
                            {7, 1}, {16, 1}, {64, 4}, {32, 8}, {64, 1}};
struct Dims {
  int64_t key, value;
};
constexpr Dims kDims[] = {{16, 16},   {32, 32},   {64, 64},
                          {80, 80},   {96, 96},   {128, 128},
                          {192, 128}, {256, 256}, {192, 192}};
/// Tq, Tk: full sequences, and short queries at the end of longer keys.
struct Lengths {
  int64_t queries, keys;
};
constexpr Lengths kLengths[] = {
    {1, 1},       {2, 2},         {63, 63},       {64, 64},     {65, 65},
    {127, 127},   {128, 128},     {129, 129},     {507, 507},   {511, 511},
    {512, 512},   {513, 513},     {1001, 1001},   {4095, 4095}, {4096, 4096},
    {4097, 4097}, {32769, 32769}, {70000, 70000}, {1, 64},      {1, 503},
    {1, 512},     {1, 4097},      {5, 64},        {5, 503},     {5, 512},
    {5, 4097},    {64, 503},      {64, 512},      {64, 4097},   {100, 503},
    {100, 512},   {100, 4097}};
/// 0 stands for more blocks than there are.
constexpr int64_t kTopk[] = {3, 4, 8, 16, 32, 0};
constexpr int64_t kBatch[] = {1, 2, 3};
constexpr int64_t kBlockSize[] = {16, 32, 64, 128};
constexpr int64_t kFanout[] = {2, 3, 4, 8};
constexpr Array::Type kTypes[] = {Array::Type::F32, Array::Type::F16,
                                  Array::Type::BF16};

/// Index of a value in each list.
constexpr size_t kFactors = 8;
constexpr std::array<size_t, kFactors> kSizes = {
    std::size(kLengths), std::size(kHeads),     std::size(kDims),
    std::size(kTopk),    std::size(kBlockSize), std::size(kFanout),
    std::size(kBatch),   std::size(kTypes)};
using Choice = std::array<size_t, kFactors>;

OpProblem makeProblem(const Choice &c) {
  OpProblem problem;
  oracle::Problem &s = problem.shape;
  s.queryLength = kLengths[c[0]].queries;
  s.keyLength = kLengths[c[0]].keys;
  s.heads = kHeads[c[1]].query;
  s.kvHeads = kHeads[c[1]].kv;
  s.headDim = kDims[c[2]].key;
  s.valueDim = kDims[c[2]].value;
  s.params.blockSize = kBlockSize[c[4]];
  s.params.topk = kTopk[c[3]];
  if (s.params.topk == 0)
    s.params.topk =
        std::clamp<int64_t>(s.keyLength / s.params.blockSize + 5, 3, 4096);
  s.params.fanout = kFanout[c[5]];
  s.batch = kBatch[c[6]];
  problem.dtype = kTypes[c[7]];
  s.scale = static_cast<float>(1 / std::sqrt(double(s.headDim)));
  s.kLen.assign(s.batch, static_cast<int32_t>(s.keyLength));
  return problem;
}

/// Bounds what a case allocates and computes, so that the sweep ends.
bool isFeasible(const Choice &c) {
  OpProblem problem = makeProblem(c);
  const oracle::Problem &s = problem.shape;
  double rows = double(s.batch) * s.heads * s.queryLength;
  double elements =
      rows * (s.headDim + s.valueDim) +
      double(s.batch) * s.kvHeads * s.keyLength * (s.headDim + s.valueDim);
  double visible =
      std::min<double>(s.keyLength, double(s.params.topk) * s.params.blockSize);
  double work = rows * visible * (s.headDim + s.valueDim) * 2;
  return elements < 0x1p27 && work < 4e11;
}
} // namespace

std::vector<Group> sweep::getPairwiseCases(int64_t &infeasible) {
  // Greedy: each case is the best of some random candidates by the number of
  // pairs that it covers for the first time, started from an uncovered pair.
  using Pair = std::array<size_t, 4>; // factor, value, factor, value
  std::set<Pair> uncovered;
  for (size_t f = 0; f < kFactors; ++f)
    for (size_t g = f + 1; g < kFactors; ++g)
      for (size_t v = 0; v < kSizes[f]; ++v)
        for (size_t w = 0; w < kSizes[g]; ++w)
          uncovered.insert({f, v, g, w});
  Random random(1);
  infeasible = 0;
  std::vector<Group> groups;
  while (!uncovered.empty()) {
    Pair seed = *uncovered.begin();
    Choice best{};
    int64_t bestGain = 0;
    for (int attempt = 0; attempt < 200; ++attempt) {
      Choice choice;
      for (size_t f = 0; f < kFactors; ++f)
        choice[f] = random.in(0, kSizes[f] - 1);
      choice[seed[0]] = seed[1];
      choice[seed[2]] = seed[3];
      if (!isFeasible(choice))
        continue;
      int64_t gain = 0;
      for (size_t f = 0; f < kFactors; ++f)
        for (size_t g = f + 1; g < kFactors; ++g)
          gain += uncovered.count({f, choice[f], g, choice[g]});
      if (gain > bestGain) {
        bestGain = gain;
        best = choice;
      }
    }
    if (bestGain == 0) {
      ++infeasible;
      uncovered.erase(seed);
      continue;
    }
    for (size_t f = 0; f < kFactors; ++f)
      for (size_t g = f + 1; g < kFactors; ++g)
        uncovered.erase({f, best[f], g, best[g]});
    groups.push_back({{makeProblem(best)}});
  }
  return groups;
}

/// Parameters that a module is compiled for.
static OpProblem makeRandomParams(Random &random) {
  OpProblem problem;
  oracle::Problem &s = problem.shape;
  oracle::Params &p = s.params;
  Heads heads =
      random.one(3) ? Heads{random.in(1, 9) * 2, 2} : random.pick(kHeads);
  s.heads = heads.query;
  s.kvHeads = heads.kv;
  s.headDim = random.in(1, 10) * 8;
  s.valueDim = random.one(2) ? s.headDim : random.in(1, 10) * 8;
  const int64_t blockSizes[] = {1, 7, 16, 16, 24, 32, 64, 64, 128};
  p.blockSize = random.pick(blockSizes);
  p.fanout = random.in(2, 8);
  p.causal = !random.one(5);
  const int64_t queryBlocks[] = {1, 1, 1, 2, 5, 16, 64};
  p.queryBlock = random.pick(queryBlocks);
  p.sinkBlocks = random.in(0, 2);
  p.localBlocks = random.in(p.causal ? 1 : 0, 3);
  int64_t forced = p.sinkBlocks + p.localBlocks +
                   (p.queryBlock - 1 + p.blockSize - 1) / p.blockSize;
  p.topk = std::max<int64_t>(1, forced) + random.in(0, 12);
  if (random.one(2))
    p.beam = p.topk + random.in(0, 3 * p.topk);
  if (random.one(2)) {
    int64_t most = p.fanout * p.beam.value_or(p.topk);
    p.rerank = random.one(3) ? 0 : random.in(p.topk, most);
    std::vector<int64_t> divisors;
    for (int64_t a = 1; a <= p.blockSize; ++a)
      if (p.blockSize % a == 0)
        divisors.push_back(a);
    p.leafAtoms = divisors[random.in(0, divisors.size() - 1)];
  }
  problem.dtype = random.pick(kTypes);
  if (random.one(2))
    problem.summaryDtype = random.pick(kTypes);
  problem.wantScores = random.one(3);
  s.scale = static_cast<float>(random.in(1, 40) / 20.0 / std::sqrt(s.headDim));
  return problem;
}

/// Lengths for given parameters.
static OpProblem makeRandomShape(Random &random, OpProblem problem,
                                 bool positions) {
  oracle::Problem &s = problem.shape;
  s.batch = random.in(1, 3);
  const int64_t lengths[] = {1,   2,   63,  64,  65,  127, 128,
                             129, 255, 300, 507, 511, 512, 513};
  s.keyLength = random.pick(lengths);
  s.queryLength = random.one(2)
                      ? s.keyLength
                      : random.in(1, std::min<int64_t>(s.keyLength, 100));
  // Large groups make the float64 reference slow.
  if (s.heads * s.keyLength > 8192)
    s.queryLength = std::min<int64_t>(s.queryLength, 64);
  s.kLen.clear();
  for (int64_t b = 0; b < s.batch; ++b)
    s.kLen.push_back(static_cast<int32_t>(
        random.one(2) ? s.keyLength : random.in(0, s.keyLength)));
  int64_t queryBlock = s.params.queryBlock;
  if (positions) {
    s.qStart.emplace();
    for (int64_t b = 0; b < s.batch; ++b)
      s.qStart->push_back(static_cast<int32_t>(
          random.in(-1, s.keyLength / queryBlock) * queryBlock));
  } else if (s.params.causal && queryBlock > 1) {
    // k_len - Tq must be a multiple of Q.
    for (int32_t &length : s.kLen)
      length = static_cast<int32_t>(
          (length - s.queryLength) / queryBlock * queryBlock + s.queryLength);
    for (int32_t &length : s.kLen)
      if (length < 0 || length > s.keyLength)
        length = static_cast<int32_t>(s.queryLength);
  }
  return problem;
}

std::vector<Group> sweep::getRandomCases(uint64_t seed, int64_t count) {
  Random random(seed);
  std::vector<Group> groups;
  for (int64_t made = 0; made < count;) {
    OpProblem params = makeRandomParams(random);
    bool positions = random.one(2);
    Group group;
    for (int i = 0; i < 8 && made < count; ++i, ++made)
      group.problems.push_back(makeRandomShape(random, params, positions));
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string sweep::describe(const OpProblem &problem) {
  const oracle::Problem &s = problem.shape;
  const oracle::Params &p = s.params;
  auto numbers = [](const std::vector<int32_t> &values) {
    std::string text;
    for (int32_t value : values)
      text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
  };
  // As the runner's command line, to repeat a case by hand.
  std::string text =
      "--shape=" + std::to_string(s.batch) + "x" + std::to_string(s.heads) +
      "x" + std::to_string(s.kvHeads) + "x" + std::to_string(s.queryLength) +
      "x" + std::to_string(s.keyLength) + "x" + std::to_string(s.headDim) +
      " --value-dim=" + std::to_string(s.valueDim) +
      " --dtype=" + npy::typeName(problem.dtype) +
      " --block-size=" + std::to_string(p.blockSize) +
      " --fanout=" + std::to_string(p.fanout) +
      " --topk=" + std::to_string(p.topk);
  if (p.beam)
    text += " --beam=" + std::to_string(*p.beam);
  if (p.rerank)
    text += " --rerank=" + std::to_string(*p.rerank) +
            " --leaf-atoms=" + std::to_string(p.leafAtoms);
  text += " --query-block=" + std::to_string(p.queryBlock) +
          " --sink=" + std::to_string(p.sinkBlocks) +
          " --local=" + std::to_string(p.localBlocks) +
          " --causal=" + (p.causal ? "true" : "false") +
          " --k-len=" + numbers(s.kLen);
  if (s.qStart)
    text += " --q-start=" + numbers(*s.qStart);
  if (problem.summaryDtype)
    text +=
        std::string(" --summary-dtype=") + npy::typeName(*problem.summaryDtype);
  if (problem.wantScores)
    text += " --scores";
  return text + " --scale=" + std::to_string(s.scale);
}
