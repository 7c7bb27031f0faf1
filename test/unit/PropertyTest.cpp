//===- PropertyTest.cpp - The properties of docs/Spec.md, compiled -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuFixture.h"

#include <algorithm>
#include <set>

using namespace pisa;
using namespace pisa::test;

namespace {

/// The kinds of code whose properties are tested.
struct Setting {
  const char *name;
  Type dtype;
  int64_t heads, kvHeads;
  std::optional<int64_t> rerank;
  int64_t queryBlock;
};

void PrintTo(const Setting &setting, std::ostream *os) { *os << setting.name; }

constexpr Setting kSettings[] = {
    {"F32", Type::F32, 1, 1, std::nullopt, 1},
    {"F32Groups", Type::F32, 6, 2, std::nullopt, 1},
    {"F32PreScoreOnly", Type::F32, 3, 1, 0, 1},
    {"F32QueryBlocks", Type::F32, 3, 1, std::nullopt, 4},
    {"BF16", Type::BF16, 3, 1, std::nullopt, 1},
    {"BF16Rerank", Type::BF16, 1, 1, 8, 1},
    {"BF16RerankQueryBlocks", Type::BF16, 1, 1, 8, 4},
};

class Property : public testing::TestWithParam<Setting> {
protected:
  /// Queries from position 0 on.
  OpProblem makeProblem(int64_t queries, int64_t keys) const {
    const Setting &setting = GetParam();
    OpProblem problem = test::makeProblem(setting.dtype, setting.heads,
                                          setting.kvHeads, queries, keys);
    oracle::Params &params = problem.shape.params;
    params.rerank = setting.rerank;
    params.queryBlock = setting.queryBlock;
    // A query block may reach into one leaf more.
    params.topk = setting.queryBlock > 1 ? 5 : 4;
    problem.shape.qStart = {{0}};
    return problem;
  }
  int64_t queryBlock() const { return GetParam().queryBlock; }
};

std::string settingName(const testing::TestParamInfo<Setting> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Settings, Property, testing::ValuesIn(kSettings),
                         settingName);

/// Those with several heads a group.
class GroupProperty : public Property {};
INSTANTIATE_TEST_SUITE_P(Settings, GroupProperty,
                         testing::Values(kSettings[1], kSettings[2],
                                         kSettings[3], kSettings[4]),
                         settingName);

/// Another number for every key and value from position `first` on, all finite
/// and many of them large.
void changeFrom(OpBuffers &buffers, int64_t first) {
  auto change = [&](int64_t, int64_t, int64_t t, int64_t d, double old) {
    if (t < first)
      return old;
    double factor = t % 3 == 0 ? -1e30 : t % 3 == 1 ? 300 : -1;
    return factor * old + (d % 2 ? 3 : -2);
  };
  transform(buffers.k, change);
  transform(buffers.v, change);
}

//===----------------------------------------------------------------------===//
// 1. Causality
//===----------------------------------------------------------------------===//

void expectCausal(const CpuCase &base, int64_t cut) {
  SCOPED_TRACE("keys and values changed from " + std::to_string(cut) + " of " +
               std::to_string(base.problem.shape.keyLength));
  CpuCase changed = base;
  changeFrom(changed.buffers, cut);
  changed.run();
  int64_t queries = std::min(cut, base.problem.shape.queryLength);
  int64_t lists = queries / base.problem.shape.params.queryBlock;
  const OpBuffers &got = changed.buffers, &want = base.buffers;
  expectSameRows("indices", {got.indices}, {want.indices}, lists);
  expectSameRows("count", {got.count}, {want.count}, lists);
  expectSameRows("out", {got.out}, {want.out}, queries);
  expectSameRows("lse", {got.lse}, {want.lse}, queries);
  // The change is one.
  if (cut < base.problem.shape.queryLength)
    EXPECT_NE(rowBytes(got.out, 0, 0, cut), rowBytes(want.out, 0, 0, cut));
}

TEST_P(Property, Causal) {
  std::vector<int64_t> lengths = {1};
  for (int64_t length = 64; length <= 2048; length *= 2)
    lengths.insert(lengths.end(), {length - 1, length, length + 1});
  for (int64_t length : lengths) {
    CpuCase base(makeProblem(length, length), /*seed=*/length);
    base.run();
    if (testing::Test::HasFailure())
      return;
    std::set<int64_t> cuts;
    // Just the last key, the last leaf, and a tree boundary or its neighbours.
    for (int64_t cut : {length - 1, (length - 1) / 64 * 64, length / 2 - 1,
                        length / 2, length / 2 + 1, length / 2 / 64 * 64 + 1})
      if (cut > 0 && cut < length)
        cuts.insert(cut / queryBlock() * queryBlock());
    for (int64_t cut : cuts)
      expectCausal(base, cut);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST_P(Property, CausalWithKeysAheadOfTheQueries) {
  // All future keys exist already, and the lengths count them.
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>{1, 2},
                               {1, 64},
                               {1, 65},
                               {1, 513},
                               {1, 2049},
                               {63, 64},
                               {64, 128},
                               {65, 513},
                               {257, 1025},
                               {513, 2048}}) {
    queries = (queries + queryBlock() - 1) / queryBlock() * queryBlock();
    if (queries >= keys)
      continue;
    CpuCase base(makeProblem(queries, keys), /*seed=*/keys);
    base.run();
    expectCausal(base, queries);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST_P(Property, AgreesWithTheOracle) {
  // What the other tests compare is right to begin with.
  CpuCase c(makeProblem(700, 700), 5);
  c.run();
  expectGood(verifyPyramid(c.problem, c.buffers));
  expectGood(verifyRoute(c.problem, c.buffers));
  expectGood(verifyAttention(c.problem, c.buffers));
}

//===----------------------------------------------------------------------===//
// 3. Batched = alone; 4. the same bits
//===----------------------------------------------------------------------===//

TEST_P(Property, BatchedIsAlone) {
  OpProblem problem = makeProblem(140, 1025);
  problem.shape.batch = 5;
  problem.shape.kLen = {1025, 63, 512, 0, 129};
  // Two sequences whose queries are all there, and three whose are not.
  problem.shape.qStart = {{884, 0, 372, 0, 64}};
  CpuCase batched(problem, 11);
  batched.run();
  for (int64_t b = 0; b < 5; ++b)
    // A cache of the length is a tree with other offsets.
    for (int64_t capacity :
         {int64_t(1025), std::max<int64_t>(1, problem.shape.kLen[b])}) {
      SCOPED_TRACE("sequence " + std::to_string(b) + ", capacity " +
                   std::to_string(capacity));
      OpProblem single = makeProblem(140, capacity);
      single.shape.kLen = {problem.shape.kLen[b]};
      single.shape.qStart = {{(*problem.shape.qStart)[b]}};
      CpuCase alone(single, 0);
      for (auto [to, from] : {std::pair(&alone.buffers.q, &batched.buffers.q),
                              {&alone.buffers.k, &batched.buffers.k},
                              {&alone.buffers.v, &batched.buffers.v}}) {
        int64_t bytes = rowBytes(*to, 0, 0, 0).size();
        for (int64_t h = 0; h < to->shape[1]; ++h)
          for (int64_t t = 0; t < to->shape[2]; ++t)
            std::memcpy(to->data.data() + (h * to->shape[2] + t) * bytes,
                        rowBytes(*from, b, h, t).data(), bytes);
      }
      alone.run();
      const OpBuffers &got = batched.buffers, &want = alone.buffers;
      int64_t lists = want.indices.shape[2];
      expectSameRows("indices", {got.indices, b}, {want.indices}, lists);
      expectSameRows("count", {got.count, b}, {want.count}, lists);
      expectSameRows("out", {got.out, b}, {want.out}, 140);
      expectSameRows("lse", {got.lse, b}, {want.lse}, 140);
    }
}

TEST_P(Property, ThreadsDoNotMatter) {
  OpProblem problem = makeProblem(700, 700);
  problem.shape.batch = 2;
  problem.shape.kLen = {700, 300};
  problem.shape.qStart = {{0, 0}};
  CpuCase base(problem, 12);
  ThreadPool one(1);
  base.run(one);
  for (unsigned threads : {2u, 7u}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    CpuCase again = base;
    ThreadPool pool(threads);
    again.run(pool);
    expectSameOutputs(again.buffers, base.buffers);
    expectSameBits("pyramid", again.buffers.pyramid, base.buffers.pyramid);
  }
}

TEST_P(Property, HundredRunsGiveTheSameBits) {
  CpuCase base(makeProblem(300, 300), 13);
  base.run();
  for (int run = 1; run < 100 && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    CpuCase again = base;
    again.run();
    expectSameOutputs(again.buffers, base.buffers);
    expectSameBits("pyramid", again.buffers.pyramid, base.buffers.pyramid);
  }
}

//===----------------------------------------------------------------------===//
// 6. Chunks = one shot
//===----------------------------------------------------------------------===//

/// Runs queries [first, first + count) of `whole` as the call that has seen no
/// more: what comes later is NaN.
CpuCase runChunk(const CpuCase &whole, int64_t first, int64_t count) {
  OpProblem problem = whole.problem;
  problem.shape.queryLength = count;
  problem.shape.kLen = {int32_t(first + count)};
  problem.shape.qStart = {{int32_t(first)}};
  CpuCase chunk(problem, 0);
  const OpBuffers &from = whole.buffers;
  int64_t bytes = rowBytes(from.q, 0, 0, 0).size();
  for (int64_t h = 0; h < problem.shape.heads; ++h)
    std::memcpy(chunk.buffers.q.data.data() + h * count * bytes,
                rowBytes(from.q, 0, h, first).data(), count * bytes);
  for (auto [to, all] :
       {std::pair(&chunk.buffers.k, &from.k), {&chunk.buffers.v, &from.v}})
    for (int64_t h = 0; h < problem.shape.kvHeads; ++h)
      // The slack is NaN already.
      std::memcpy(to->data.data() + h * problem.shape.keyLength * bytes,
                  rowBytes(*all, 0, h, 0).data(), (first + count) * bytes);
  chunk.run();
  return chunk;
}

TEST_P(Property, ChunksAreOneShot) {
  constexpr int64_t length = 1100;
  CpuCase whole(makeProblem(length, length), 14);
  whole.run();
  for (int64_t size : {1, 63, 64, 100, 1000}) {
    if (size % queryBlock() != 0)
      continue;
    for (int64_t first = 0; first < length; first += size) {
      // Decoding is all of the first leaf, and around the others' boundaries.
      if (size == 1 && first > 70 && (first + 2) % 64 > 3)
        continue;
      int64_t count = std::min(size, length - first);
      SCOPED_TRACE("chunk of " + std::to_string(count) + " at " +
                   std::to_string(first));
      CpuCase chunk = runChunk(whole, first, count);
      const OpBuffers &got = chunk.buffers, &want = whole.buffers;
      int64_t lists = got.indices.shape[2], list = first / queryBlock();
      expectSameRows("indices", {got.indices}, {want.indices, 0, list}, lists);
      expectSameRows("count", {got.count}, {want.count, 0, list}, lists);
      expectSameRows("out", {got.out}, {want.out, 0, first}, count);
      expectSameRows("lse", {got.lse}, {want.lse, 0, first}, count);
      if (testing::Test::HasFailure())
        return;
    }
  }
}

TEST_P(Property, QStartDefaultsToTheEnd) {
  // The same function without the operand.
  CpuCase given(makeProblem(64, 513), 15);
  given.shape().kLen = {448};
  given.shape().qStart = {{384}};
  fillRandom(given.problem, 15, given.buffers);
  given.run();
  CpuCase absent = given;
  absent.shape().qStart.reset();
  absent.run();
  expectSameOutputs(absent.buffers, given.buffers);
}

//===----------------------------------------------------------------------===//
// 5. K >= visible leaves = dense attention
//===----------------------------------------------------------------------===//

/// Softmax attention over all keys up to each query's position, in float64.
void denseAttention(const OpProblem &problem, const OpBuffers &buffers,
                    std::vector<double> &out, std::vector<double> &lse,
                    std::vector<double> &largest) {
  const oracle::Problem &s = problem.shape;
  std::vector<double> q = npy::toDoubles(buffers.q);
  std::vector<double> k = npy::toDoubles(buffers.k);
  std::vector<double> v = npy::toDoubles(buffers.v);
  int64_t dim = s.headDim;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      int64_t kv = b * s.kvHeads + h * s.kvHeads / s.heads;
      for (int64_t i = 0; i < s.queryLength; ++i) {
        int64_t end = s.kLen[b] - s.queryLength + i + 1;
        const double *query = &q[((b * s.heads + h) * s.queryLength + i) * dim];
        std::vector<double> logits(end), sum(dim, 0.0);
        double maximum = -kInf, total = 0, most = 0;
        for (int64_t t = 0; t < end; ++t) {
          const double *key = &k[(kv * s.keyLength + t) * dim];
          for (int64_t d = 0; d < dim; ++d)
            logits[t] += s.scale * query[d] * key[d];
          maximum = std::max(maximum, logits[t]);
        }
        for (int64_t t = 0; t < end; ++t) {
          double weight = std::exp(logits[t] - maximum);
          total += weight;
          for (int64_t d = 0; d < dim; ++d) {
            double value = v[(kv * s.keyLength + t) * dim + d];
            sum[d] += weight * value;
            most = std::max(most, std::abs(value));
          }
        }
        for (int64_t d = 0; d < dim; ++d)
          out.push_back(sum[d] / total);
        lse.push_back(maximum + std::log(total));
        largest.push_back(most);
      }
    }
}

TEST_P(Property, EnoughBlocksAreDenseAttention) {
  for (int64_t length : {1, 63, 64, 65, 200, 256}) {
    SCOPED_TRACE("length " + std::to_string(length));
    length = (length + queryBlock() - 1) / queryBlock() * queryBlock();
    OpProblem problem = makeProblem(length, length);
    problem.shape.batch = 2;
    problem.shape.kLen = {int32_t(length), int32_t(length)};
    problem.shape.qStart = {{0, 0}};
    CpuCase c(problem, 16 + length);
    c.run();
    std::vector<double> out, lse, largest;
    denseAttention(c.problem, c.buffers, out, lse, largest);
    std::vector<double> gotOut = npy::toDoubles(c.buffers.out);
    std::vector<double> gotLse = npy::toDoubles(c.buffers.lse);
    double eps = GetParam().dtype == Type::BF16
                     ? 0x1p-8
                     : 0x1p-23 * std::sqrt(double(length));
    ASSERT_EQ(gotOut.size(), out.size());
    ASSERT_EQ(gotLse.size(), lse.size());
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(gotOut[i], out[i], 2 * eps * largest[i / 16] + 1e-5)
          << "row " << i / 16 << ", column " << i % 16;
    for (size_t i = 0; i < lse.size(); ++i)
      ASSERT_NEAR(gotLse[i], lse[i], 1e-4 * std::max(1.0, std::abs(lse[i])))
          << "row " << i;
  }
}

//===----------------------------------------------------------------------===//
// 7. Permuted heads
//===----------------------------------------------------------------------===//

TEST_P(GroupProperty, PermutedHeadsPermuteTheOutputs) {
  const Setting &setting = GetParam();
  int64_t group = setting.heads / setting.kvHeads;
  constexpr int64_t length = 1000;
  CpuCase base(makeProblem(length, length), 17);
  CpuCase permuted = base;
  auto source = [&](int64_t head) {
    return head / group * group + (head + 1) % group;
  };
  int64_t bytes = length * rowBytes(base.buffers.q, 0, 0, 0).size();
  for (int64_t h = 0; h < setting.heads; ++h)
    std::memcpy(permuted.buffers.q.data.data() + h * bytes,
                base.buffers.q.data.data() + source(h) * bytes, bytes);
  base.run();
  permuted.run();

  // Scores of the group are sums over its heads, in another order now: lists
  // may differ where the tie rule lets them.
  expectGood(verifyRoute(permuted.problem, permuted.buffers));
  int64_t lists = base.buffers.indices.shape[2], different = 0;
  int64_t q = queryBlock();
  for (int64_t h = 0; h < setting.heads; ++h)
    for (int64_t t = 0; t < length; ++t) {
      if (permuted.list(t / q, h / group) != base.list(t / q, h / group)) {
        ++different;
        continue;
      }
      ASSERT_EQ(rowBytes(permuted.buffers.out, 0, h, t),
                rowBytes(base.buffers.out, 0, source(h), t))
          << "head " << h << ", query " << t;
      ASSERT_EQ(rowBytes(permuted.buffers.lse, 0, h, t),
                rowBytes(base.buffers.lse, 0, source(h), t))
          << "head " << h << ", query " << t;
    }
  EXPECT_LE(different, setting.heads * lists / 1000);
}

} // namespace
