//===- SelectionCasesTest.cpp - Inputs that break routers -------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuFixture.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>

using namespace pisa;
using namespace pisa::test;

namespace {

using Indices = std::vector<int32_t>;

void fill(Array &array, double value) {
  transform(array, [&](int64_t, int64_t, int64_t, int64_t, double old) {
    return std::isnan(old) ? old : value; // slack stays NaN
  });
}

/// Two heads of one group, with scores: the tests share the code of few
/// problems.
OpProblem makeScored(Type dtype, int64_t length,
                     std::optional<int64_t> rerank = std::nullopt) {
  OpProblem problem = makeProblem(dtype, 2, 1, length, length);
  problem.shape.params.rerank = rerank;
  problem.wantScores = true;
  return problem;
}

/// The oracle's own selection, in spite of ties. Scores are rounded.
void expectExact(const CpuCase &c) {
  OpProblem problem = c.problem;
  problem.wantScores = false;
  VerifyOptions options;
  options.toleranceScale = 0;
  expectGood(verifyRoute(problem, c.buffers, options));
}

/// The forced leaves of a query and, where room is left, the lowest others.
Indices lowestLeaves(const oracle::Params &params, int64_t leaves,
                     int64_t position) {
  int64_t current = std::min(leaves - 1, position / params.blockSize);
  auto isForced = [&](int64_t leaf) {
    return leaf < params.sinkBlocks || leaf > current - params.localBlocks;
  };
  int64_t room = params.topk;
  for (int64_t leaf = 0; leaf <= current; ++leaf)
    room -= isForced(leaf);
  Indices result;
  for (int64_t leaf = 0; leaf <= current; ++leaf)
    if (isForced(leaf) || room-- > 0)
      result.push_back(leaf);
  return result;
}

//===----------------------------------------------------------------------===//
// Ties
//===----------------------------------------------------------------------===//

struct Variant {
  const char *name;
  Type dtype;
  int64_t topk;
  std::optional<int64_t> beam, rerank;
};

void PrintTo(const Variant &variant, std::ostream *os) { *os << variant.name; }

class Ties : public testing::TestWithParam<Variant> {
protected:
  CpuCase makeCase(int64_t length, uint64_t seed) const {
    OpProblem problem = makeScored(GetParam().dtype, length, GetParam().rerank);
    problem.shape.params.topk = GetParam().topk;
    problem.shape.params.beam = GetParam().beam;
    return CpuCase(problem, seed);
  }
  void expectLowest(const CpuCase &c) const {
    const oracle::Problem &s = c.problem.shape;
    for (int64_t t = 0; t < s.queryLength; ++t)
      ASSERT_EQ(c.list(t), lowestLeaves(s.params, s.numLeaves(), t))
          << "query " << t;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Variants, Ties,
    testing::Values(Variant{"F32", Type::F32, 4, std::nullopt, std::nullopt},
                    Variant{"F32Wide", Type::F32, 8, 16, std::nullopt},
                    Variant{"F32PreScoreOnly", Type::F32, 4, std::nullopt, 0},
                    Variant{"BF16Rerank", Type::BF16, 4, std::nullopt, 8}),
    [](const auto &info) { return std::string(info.param.name); });

TEST_P(Ties, ConstantKeys) {
  CpuCase base = makeCase(1601, 1);
  // Means of equal keys are exact, so that all scores of a level are equal.
  fill(base.buffers.k, 0.75);
  base.route();
  expectLowest(base);
  if (GetParam().rerank.value_or(0) == 0)
    expectExact(base);
  for (int run = 1; run < 100 && !HasFailure(); ++run) {
    CpuCase again = base;
    again.route();
    expectSameBits("indices", again.buffers.indices, base.buffers.indices);
    expectSameBits("count", again.buffers.count, base.buffers.count);
  }
}

TEST_P(Ties, ZeroQueries) {
  CpuCase c = makeCase(1601, 2);
  fill(c.buffers.q, 0);
  c.route();
  expectLowest(c);
}

TEST_P(Ties, ZeroKeys) {
  CpuCase c = makeCase(1601, 3);
  fill(c.buffers.k, 0);
  c.route();
  expectLowest(c);
}

TEST_P(Ties, SignOfZeroIsNoOrder) {
  CpuCase c = makeCase(1601, 4);
  transform(c.buffers.k, [](int64_t, int64_t, int64_t t, int64_t, double) {
    return t / 64 % 2 ? 0.0 : -0.0;
  });
  for (double scale : {1.0, -1.0, 0.0, -0.0}) {
    SCOPED_TRACE(scale);
    c.shape().scale = scale;
    c.route();
    expectLowest(c);
  }
}

TEST(SelectionCases, ZeroScoresOfEitherSign) {
  // A leaf of one key and one head: its exact score is its logit.
  OpProblem problem = makeProblem(Type::F32, 1, 1, 40, 40);
  problem.shape.params.blockSize = 1;
  problem.shape.params.leafAtoms = 1;
  problem.wantScores = true;
  CpuCase c(problem, 5);
  fill(c.buffers.q, 1);
  for (double scale : {1.0, -1.0}) {
    SCOPED_TRACE(scale);
    c.shape().scale = scale;
    for (int64_t phase : {0, 1}) {
      transform(c.buffers.k, [&](int64_t, int64_t, int64_t t, int64_t d,
                                 double) {
        // Products of either sign, and sums that cancel.
        return t % 3 == 2 ? (d % 2 ? 1.0 : -1.0) : (t + phase) % 3 ? 0.0 : -0.0;
      });
      c.route();
      for (int64_t t = 0; t < 40; ++t)
        ASSERT_EQ(c.list(t), lowestLeaves(c.shape().params, 40, t))
            << "query " << t;
    }
  }
}

//===----------------------------------------------------------------------===//
// Forced leaves
//===----------------------------------------------------------------------===//

TEST(SelectionCases, SinkAndPreviousBlockStay) {
  for (Type dtype : {Type::F32, Type::BF16}) {
    CpuCase c(makeScored(dtype, 1601), 6);
    fill(c.buffers.q, 1);
    for (double low : {-1e4, -1e8}) {
      CpuCase driven = c;
      // Everything that is forced scores least: the sink always, and each block
      // less than the one before it.
      transform(driven.buffers.k,
                [&](int64_t, int64_t, int64_t t, int64_t, double old) {
                  int64_t leaf = t / 64;
                  return leaf == 0 ? low : old - double(leaf);
                });
      driven.run();
      for (int64_t t = 0; t < 1601; ++t) {
        Indices list = driven.list(t), forced;
        for (int64_t leaf : {int64_t(0), t / 64 - 1, t / 64})
          if (leaf >= 0 && (forced.empty() || leaf > forced.back()))
            forced.push_back(leaf);
        ASSERT_TRUE(std::includes(list.begin(), list.end(), forced.begin(),
                                  forced.end()))
            << "query " << t << ", low " << low;
        ASSERT_EQ(list.size(), std::min<size_t>(4, t / 64 + 1))
            << "query " << t;
      }
      expectGood(verifyRoute(driven.problem, driven.buffers));
      expectGood(verifyAttention(driven.problem, driven.buffers));
    }
  }
}

TEST(SelectionCases, MoreForcedLeavesThanDefault) {
  OpProblem problem = makeProblem(Type::F32, 1, 1, 700, 700);
  problem.shape.params.sinkBlocks = 2;
  problem.shape.params.localBlocks = 3;
  problem.shape.params.topk = 5; // nothing is free
  CpuCase c(problem, 7);
  c.route();
  for (int64_t t = 0; t < 700; ++t)
    ASSERT_EQ(c.list(t), lowestLeaves(problem.shape.params, 11, t))
        << "query " << t;
}

TEST_P(Ties, MoreRoomThanBlocks) {
  int64_t topk = GetParam().topk;
  for (int64_t length : {64 * topk, 64 * topk - 63, 64 * (topk - 1),
                         int64_t(65), int64_t(64), int64_t(1)}) {
    CpuCase c = makeCase(length, 8);
    c.run();
    for (int64_t t = 0; t < length; ++t) {
      Indices all;
      for (int64_t leaf = 0; leaf <= t / 64; ++leaf)
        all.push_back(leaf);
      ASSERT_EQ(c.list(t), all) << "query " << t << " of " << length;
    }
    expectGood(verifyRoute(c.problem, c.buffers)); // compares the counts too
    expectGood(verifyAttention(c.problem, c.buffers));
  }
}

TEST(SelectionCases, FewerPlacesThanForcedLeaves) {
  for (int64_t topk : {1, 2}) {
    OpProblem problem = makeProblem(Type::F32, 1, 1, 64, 64);
    problem.shape.params.topk = topk;
    std::string got = ", but got " + std::to_string(topk);
    EXPECT_EQ(
        oracle::validate(problem.shape),
        std::optional<std::string>(
            "expected topk to be at least 3, the number of forced blocks" +
            got));
    std::vector<std::string> messages;
    mlir::ScopedDiagnosticHandler handler(
        &getContext(), [&](mlir::Diagnostic &diagnostic) {
          messages.push_back(diagnostic.str());
          return mlir::success();
        });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        printModule(problem, 4), &getContext());
    EXPECT_FALSE(module);
    ASSERT_FALSE(messages.empty());
    EXPECT_EQ(messages[0], "expected 'topk' to be at least 3, the number of "
                           "forced blocks" +
                               got);
    // The harness says it too.
    auto code = OpCode::compile(getContext(), problem, 4, {});
    ASSERT_FALSE(bool(code));
    EXPECT_EQ(llvm::toString(code.takeError()), "the problem is not valid");
  }
}

//===----------------------------------------------------------------------===//
// Slack
//===----------------------------------------------------------------------===//

TEST(SelectionCases, SlackIsNotRead) {
  for (auto [dtype, rerank] :
       {std::pair<Type, std::optional<int64_t>>{Type::F32, std::nullopt},
        {Type::F32, 0},
        {Type::BF16, 8}})
    for (int32_t length : {1, 63, 64, 65, 129, 577, 640, 1025}) {
      SCOPED_TRACE("length " + std::to_string(length));
      CpuCase exact(makeScored(dtype, length, rerank), length);
      exact.run();
      expectFinite("out", exact.buffers.out);
      expectFinite("pyramid", exact.buffers.pyramid);

      for (int64_t slack : {1, 63, 1000}) {
        SCOPED_TRACE("slack " + std::to_string(slack));
        CpuCase roomy = exact;
        roomy.shape().keyLength = length + slack;
        CpuCase poisoned(roomy.problem, 0); // NaN in the slack
        poisoned.buffers.q = exact.buffers.q;
        for (auto [to, from] :
             {std::pair(&poisoned.buffers.k, &exact.buffers.k),
              {&poisoned.buffers.v, &exact.buffers.v}})
          std::memcpy(to->data.data(), from->data.data(), from->data.size());
        poisoned.run();
        expectSameOutputs(poisoned.buffers, exact.buffers);
        // Nodes without a key are zero.
        expectFinite("pyramid", poisoned.buffers.pyramid);
        expectGood(verifyPyramid(poisoned.problem, poisoned.buffers));
        if (HasFailure())
          return;
      }
    }
}

TEST(SelectionCases, PositionsPastTheLength) {
  OpProblem problem = makeProblem(Type::F32, 2, 1, 300, 700);
  problem.shape.batch = 4;
  problem.shape.kLen = {650, 650, 130, 0};
  problem.shape.qStart = {{600, 5000, 100, 7}};
  CpuCase c(problem, 9);
  c.run();
  expectGood(verifyRoute(c.problem, c.buffers));
  expectGood(verifyAttention(c.problem, c.buffers));
  expectFinite("out", c.buffers.out);
}

//===----------------------------------------------------------------------===//
// Large numbers
//===----------------------------------------------------------------------===//

class Ranges : public testing::TestWithParam<Variant> {
protected:
  CpuCase makeCase(uint64_t seed) const {
    // The scale is 1/4.
    return CpuCase(makeScored(GetParam().dtype, 900, GetParam().rerank), seed);
  }
  void expectRight(CpuCase &c) const {
    c.run();
    expectFinite("out", c.buffers.out);
    expectFinite("lse", c.buffers.lse);
    expectGood(verifyPyramid(c.problem, c.buffers));
    expectGood(verifyRoute(c.problem, c.buffers));
    expectGood(verifyAttention(c.problem, c.buffers));
  }
};

INSTANTIATE_TEST_SUITE_P(
    Variants, Ranges,
    testing::Values(Variant{"F32", Type::F32, 4, std::nullopt, std::nullopt},
                    Variant{"F32PreScoreOnly", Type::F32, 4, std::nullopt, 0},
                    Variant{"BF16", Type::BF16, 4, std::nullopt, std::nullopt},
                    Variant{"BF16Rerank", Type::BF16, 4, std::nullopt, 8},
                    Variant{"F16", Type::F16, 4, std::nullopt, std::nullopt}),
    [](const auto &info) { return std::string(info.param.name); });

TEST_P(Ranges, LogitsOfTenThousand) {
  CpuCase c = makeCase(10);
  // Logits are 0.25 * 16 * q * k and reach 10^4 on both sides. Their distances
  // are multiples of 40, so that the rounding of logits so large cannot show.
  fill(c.buffers.q, 10);
  transform(c.buffers.k, [](int64_t, int64_t, int64_t t, int64_t, double) {
    return double(t * 379 % 501 - 250);
  });
  expectRight(c);
  std::vector<double> lse = npy::toDoubles(c.buffers.lse);
  EXPECT_GE(*std::max_element(lse.begin(), lse.end()), 9900);
}

TEST_P(Ranges, LogitsOfMinusTenThousand) {
  CpuCase c = makeCase(11);
  fill(c.buffers.q, -100);
  fill(c.buffers.k, 25);
  expectRight(c);
  std::vector<double> lse = npy::toDoubles(c.buffers.lse);
  for (double value : lse)
    ASSERT_NEAR(value, -1e4, 10);
}

TEST_P(Ranges, OneHugeOutlierKey) {
  for (int64_t at : {0, 70, 200, 500, 899}) {
    SCOPED_TRACE("key " + std::to_string(at));
    CpuCase c = makeCase(12);
    double huge = GetParam().dtype == Type::F16 ? 1000 : 1e6;
    transform(c.buffers.k, [&](int64_t, int64_t, int64_t t, int64_t,
                               double old) { return t == at ? huge : old; });
    // Its own logit alone is large: no sum of large terms cancels.
    transform(c.buffers.q,
              [](int64_t, int64_t, int64_t t, int64_t, double old) {
                return (t % 2 ? 1 : -1) * (std::abs(old) + 0.5);
              });
    expectRight(c);
  }
}

TEST_P(Ranges, AllKeysEqual) {
  CpuCase c = makeCase(13);
  fill(c.buffers.k, -3);
  expectRight(c);
}

TEST_P(Ranges, CommonChannel) {
  std::vector<std::optional<Type>> summaries = {std::nullopt};
  if (!GetParam().rerank && GetParam().dtype != Type::F16)
    summaries.push_back(GetParam().dtype == Type::F32 ? Type::BF16 : Type::F32);
  for (std::optional<Type> summary : summaries)
    for (double common : {100.0, -100.0}) {
      CpuCase c = makeCase(14);
      c.problem.summaryDtype = summary;
      SCOPED_TRACE(std::string(npy::typeName(c.problem.getSummaryType())) +
                   " summaries, common " + std::to_string(common));
      transform(c.buffers.k,
                [&](int64_t, int64_t, int64_t, int64_t d, double old) {
                  return d == 3 ? common + old : old;
                });
      expectRight(c);
    }
}

//===----------------------------------------------------------------------===//
// NaN and infinities
//===----------------------------------------------------------------------===//

/// Nine leaves of 16 keys and one query at the end; leaves 0 and 8 are forced,
/// and only the cut of the leaves drops anything. Key t of the leaf has the
/// score of its first channel.
CpuCase makeOrderCase() {
  OpProblem problem = makeProblem(Type::F32, 1, 1, 1, 9 * 16);
  oracle::Params &params = problem.shape.params;
  params.blockSize = 16;
  params.topk = 5; // three free places
  params.beam = 16;
  params.localBlocks = 1;
  problem.shape.scale = 1;
  CpuCase c(problem, 15);
  transform(c.buffers.q, [](int64_t, int64_t, int64_t, int64_t d, double) {
    return d == 0 ? 1.0 : 0.0;
  });
  return c;
}

/// Leaf i + 1 gets one key `values[i]` among zeros.
void setOneKeys(CpuCase &c, const std::vector<double> &values) {
  transform(c.buffers.k, [&](int64_t, int64_t, int64_t t, int64_t d, double) {
    size_t leaf = t / 16;
    bool there = d == 0 && t % 16 == 5 && leaf >= 1 && leaf <= values.size();
    return there ? values[leaf - 1] : 0.0;
  });
}
/// Leaf i + 1 has `values[i]` in all its keys.
void setAllKeys(CpuCase &c, const std::vector<double> &values) {
  transform(c.buffers.k, [&](int64_t, int64_t, int64_t t, int64_t d, double) {
    size_t leaf = t / 16;
    return d == 0 && leaf >= 1 && leaf <= values.size() ? values[leaf - 1]
                                                        : 0.0;
  });
}

TEST(SelectionCases, NanComesLast) {
  CpuCase c = makeOrderCase();
  setOneKeys(c, {kNan, 1, kNan, 3, 2, kNan, -1});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 2, 4, 5, 8}));
  expectExact(c);
  // Where nothing else is left, the lower one.
  setOneKeys(c, {kNan, 1, kNan, kNan, kNan, kNan, 2});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 1, 2, 7, 8}));
  expectExact(c);
  setOneKeys(c, {kNan, kNan, kNan, kNan, kNan, kNan, kNan});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 1, 2, 3, 8}));
  expectExact(c);
}

TEST(SelectionCases, NanComesAfterMinusInfinity) {
  CpuCase c = makeOrderCase();
  setAllKeys(c, {kNan, kNan, -kInf, 3, -kInf, -kInf, kNan});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 3, 4, 5, 8}));
  expectExact(c);
  setAllKeys(c, {kNan, kNan, kNan, kNan, kNan, kNan, -kInf});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 1, 2, 7, 8}));
  expectExact(c);
}

TEST(SelectionCases, PlusInfinityComesFirst) {
  CpuCase c = makeOrderCase();
  setOneKeys(c, {5, 6, 7, 8, 9, kInf, kInf});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 5, 6, 7, 8}));
  expectExact(c);
  setAllKeys(c, {kNan, 6, -kInf, kInf, 9, kNan, kInf});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 4, 5, 7, 8}));
  expectExact(c);
}

TEST(SelectionCases, MinusInfinityKeysCountAsNothing) {
  // One key of -inf takes nothing from the other fifteen.
  CpuCase c = makeOrderCase();
  setOneKeys(c, {-kInf, -kInf, -kInf, -kInf, 0, 0, 0});
  c.route();
  EXPECT_EQ(c.list(0), (Indices{0, 5, 6, 7, 8}));
  expectGood(verifyRoute(c.problem, c.buffers));
}

TEST(SelectionCases, NodesOfNanComeLast) {
  // A deeper tree, where NaN reaches the means: the walk must keep the others.
  for (double bad : {kNan, -kInf, kInf}) {
    SCOPED_TRACE(bad);
    CpuCase c(makeScored(Type::F32, 1600), 16);
    transform(c.buffers.q, [](int64_t, int64_t, int64_t, int64_t, double old) {
      return std::abs(old) + 0.1;
    });
    transform(c.buffers.k,
              [&](int64_t, int64_t, int64_t t, int64_t d, double old) {
                int64_t leaf = t / 64;
                bool there = leaf == 3 || leaf == 9 || leaf == 10 || leaf == 17;
                return there && d == 0 && t % 64 == 20 ? bad : old;
              });
    c.route();
    expectGood(verifyRoute(c.problem, c.buffers));
  }
}

} // namespace
