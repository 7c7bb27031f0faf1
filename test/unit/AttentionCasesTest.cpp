//===- AttentionCasesTest.cpp - Lists that break attention ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuFixture.h"

#include <algorithm>
#include <random>

using namespace pisa;
using namespace pisa::test;

namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min();

/// Entries of a list in these tests: more than there are blocks.
constexpr int64_t kWidth = 24;

struct Kind {
  const char *name;
  Type dtype;
  int64_t heads, kvHeads, headDim, valueDim, queryBlock;
  bool causal;
};

void PrintTo(const Kind &kind, std::ostream *os) { *os << kind.name; }

constexpr Kind kKinds[] = {
    {"F32", Type::F32, 1, 1, 16, 16, 1, true},
    {"F32Groups", Type::F32, 6, 2, 24, 40, 1, true},
    {"BF16", Type::BF16, 3, 1, 32, 16, 1, true},
    {"F16", Type::F16, 2, 1, 16, 16, 1, true},
    {"F32QueryBlocks", Type::F32, 2, 1, 16, 16, 4, true},
    {"BF16NotCausal", Type::BF16, 2, 1, 16, 16, 1, false},
};

class Lists : public testing::TestWithParam<Kind> {
protected:
  /// Queries at the end of the keys, with lists of -1.
  CpuCase makeCase(int64_t queries, int64_t keys, uint64_t seed,
                   int64_t batch = 1) const {
    const Kind &kind = GetParam();
    OpProblem problem = makeProblem(kind.dtype, kind.heads, kind.kvHeads,
                                    queries, keys, kind.headDim);
    oracle::Problem &s = problem.shape;
    s.batch = batch;
    s.valueDim = kind.valueDim;
    s.params.topk = 8;
    s.params.queryBlock = kind.queryBlock;
    s.params.causal = kind.causal;
    s.kLen.assign(batch, keys);
    CpuCase c(problem, seed);
    setLists(c, [](int64_t, int64_t) { return std::vector<int32_t>(); });
    return c;
  }

  /// Lists of each row, filled up with -1.
  static void
  setLists(CpuCase &c,
           llvm::function_ref<std::vector<int32_t>(int64_t kvHead, int64_t row)>
               list) {
    const oracle::Problem &s = c.problem.shape;
    int64_t rows = s.numQueryBlocks();
    std::vector<int32_t> all;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.kvHeads; ++h)
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<int32_t> entries = list(h, row);
          EXPECT_LE(entries.size(), size_t(kWidth));
          entries.resize(kWidth, -1);
          all.insert(all.end(), entries.begin(), entries.end());
        }
    Array &indices = c.buffers.indices;
    indices.type = Type::I32;
    indices.shape = {s.batch, s.kvHeads, rows, kWidth};
    indices.data.resize(all.size() * sizeof(int32_t));
    std::memcpy(indices.data.data(), all.data(), indices.data.size());
  }

  static void expectRight(CpuCase &c) {
    c.attend();
    expectGood(verifyAttention(c.problem, c.buffers));
  }
  static void expectNothing(const CpuCase &c) {
    for (double value : npy::toDoubles(c.buffers.out))
      ASSERT_EQ(value, 0);
    for (double value : npy::toDoubles(c.buffers.lse))
      ASSERT_EQ(value, -kInf);
  }
};

std::string kindName(const testing::TestParamInfo<Kind> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Lists, testing::ValuesIn(kKinds), kindName);

class CausalLists : public Lists {};
INSTANTIATE_TEST_SUITE_P(Kinds, CausalLists,
                         testing::Values(kKinds[0], kKinds[1], kKinds[2],
                                         kKinds[4]),
                         kindName);

/// Two kinds, since these need code with checks and without.
class CheckedLists : public Lists {};
INSTANTIATE_TEST_SUITE_P(Kinds, CheckedLists,
                         testing::Values(kKinds[1], kKinds[4]), kindName);

/// `count` different blocks below `blocks`, in random order.
std::vector<int32_t> someBlocks(std::mt19937 &random, int64_t blocks,
                                int64_t count) {
  std::vector<int32_t> all(blocks);
  for (int64_t i = 0; i < blocks; ++i)
    all[i] = i;
  for (int64_t i = blocks - 1; i > 0; --i)
    std::swap(all[i], all[random() % (i + 1)]);
  all.resize(std::min(blocks, count));
  return all;
}

//===----------------------------------------------------------------------===//
// Entries that contribute nothing
//===----------------------------------------------------------------------===//

TEST_P(Lists, MinusOneAnywhere) {
  CpuCase c = makeCase(200, 700, 1, /*batch=*/2);
  // In front, in between, at the end; and sixteen of them in front.
  setLists(c, [](int64_t h, int64_t row) -> std::vector<int32_t> {
    switch ((row + h) % 5) {
    case 0:
      return {-1, 0, 3, 5};
    case 1:
      return {0, -1, 3, -1, -1, 5};
    case 2: {
      std::vector<int32_t> list(16, -1);
      list.insert(list.end(), {1, 2, 7});
      return list;
    }
    case 3:
      return {};
    default:
      return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    }
  });
  expectRight(c);
  for (int64_t h = 0; h < c.shape().heads; ++h)
    for (int64_t t = 0; t < 200; ++t)
      if ((t / c.shape().params.queryBlock + h / c.problem.shape.groupSize()) %
              5 ==
          3)
        for (uint8_t byte : rowBytes(c.buffers.out, 1, h, t))
          ASSERT_EQ(int(byte), 0) << "head " << h << ", query " << t;
}

TEST_P(Lists, NothingButMinusOne) {
  int64_t q = GetParam().queryBlock;
  for (int64_t queries : {q, int64_t(64), int64_t(100)}) {
    CpuCase c = makeCase(queries, 700, 2);
    expectRight(c);
    expectNothing(c);
  }
}

TEST_P(Lists, OutOfRangeAndFuture) {
  CpuCase c = makeCase(300, 700, 3);
  int64_t start = c.shape().params.causal ? 400 : 0;
  int64_t q = c.shape().params.queryBlock;
  setLists(c, [&](int64_t h, int64_t row) -> std::vector<int32_t> {
    // The block after the query's, if there is one, is wholly in the future.
    int32_t next = (start + row * q + q - 1) / 64 + 1;
    std::vector<int32_t> list = {kMax,      0,        11,
                                 -2,        kMin,     3,
                                 1000,      33554432, next == 11 ? 13 : next,
                                 kMax / 64, 2,        kMin / 64,
                                 -64,       1 << 26,  kMax - 63};
    if (row % 3 == 1) // nothing else
      list[1] = list[5] = list[10] = -1;
    std::rotate(list.begin(), list.begin() + (row + h) % list.size(),
                list.end());
    return list;
  });
  expectRight(c);
}

TEST_P(Lists, OnlyOutOfRange) {
  CpuCase c = makeCase(132, 700, 4);
  setLists(c, [](int64_t, int64_t row) -> std::vector<int32_t> {
    return row % 2 ? std::vector<int32_t>{kMin, kMax, 11, 4096}
                   : std::vector<int32_t>(kWidth, kMax);
  });
  expectRight(c);
  expectNothing(c);
}

TEST_P(CausalLists, FutureEntriesOfNanContributeNothing) {
  CpuCase c = makeCase(192, 192, 5);
  auto poison = [](int64_t, int64_t, int64_t t, int64_t, double old) {
    return t >= 128 ? kNan : old;
  };
  transform(c.buffers.k, poison);
  transform(c.buffers.v, poison);
  // The queries below 128 list it too.
  int64_t q = c.shape().params.queryBlock;
  setLists(c, [&](int64_t, int64_t row) -> std::vector<int32_t> {
    return row * q < 128 ? std::vector<int32_t>{2, 0, 1}
                         : std::vector<int32_t>{0, 1};
  });
  expectRight(c);
  expectFinite("out", c.buffers.out);
}

//===----------------------------------------------------------------------===//
// Widths and lengths
//===----------------------------------------------------------------------===//

TEST_P(Lists, WiderThanTheBlocks) {
  for (int64_t keys : {1, 40, 64, 65, 300}) {
    int64_t queries = (std::min<int64_t>(keys, 60) + 3) / 4 * 4;
    keys = std::max(keys, queries);
    CpuCase c = makeCase(queries, keys - (keys - queries) % 4, 6);
    setLists(c, [&](int64_t, int64_t) -> std::vector<int32_t> {
      return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    });
    expectRight(c);
    for (double value : npy::toDoubles(c.buffers.lse))
      ASSERT_TRUE(std::isfinite(value)); // block 0 is there for all
  }
}

TEST_P(Lists, AnyNumberOfEntries) {
  std::mt19937 random(7);
  CpuCase c = makeCase(240, 1480, 7);
  setLists(c, [&](int64_t, int64_t row) {
    return someBlocks(random, 24, row % (kWidth + 1));
  });
  expectRight(c);
}

TEST_P(Lists, LastBlockOfFewKeys) {
  for (int64_t keys : {1, 16, 63})
    for (int64_t slack : {0, 1, 64, 200}) {
      SCOPED_TRACE(std::to_string(keys) + " keys, slack " +
                   std::to_string(slack));
      // The length is 256 and some; NaN in the slack. The queries begin at a
      // multiple of four.
      CpuCase c = makeCase(16 + keys % 4, 256 + keys + slack, 8);
      c.shape().kLen = {int32_t(256 + keys)};
      fillRandom(c.problem, 8, c.buffers);
      setLists(c, [&](int64_t, int64_t row) -> std::vector<int32_t> {
        switch (row % 3) {
        case 0:
          return {4};
        case 1:
          return {4, 1};
        default:
          return {0, 4, 5, 6};
        }
      });
      expectRight(c);
      expectFinite("out", c.buffers.out);
    }
}

TEST_P(Lists, NoKeys) {
  CpuCase c = makeCase(8, 64, 9);
  c.shape().kLen = {0};
  fillRandom(c.problem, 9, c.buffers); // all NaN
  setLists(c, [](int64_t, int64_t) -> std::vector<int32_t> { return {0, 1}; });
  expectRight(c);
  expectNothing(c);
}

//===----------------------------------------------------------------------===//
// NaN and infinities
//===----------------------------------------------------------------------===//

TEST_P(Lists, NanInBlocksThatNoneSelects) {
  std::mt19937 random(10);
  CpuCase c = makeCase(300, 1300, 10); // 21 blocks
  auto poison = [](int64_t, int64_t, int64_t t, int64_t d, double old) {
    return t / 64 % 3 == 1 ? (d % 2 ? kNan : kInf) : old;
  };
  transform(c.buffers.k, poison);
  transform(c.buffers.v, poison);
  setLists(c, [&](int64_t, int64_t) {
    std::vector<int32_t> list = someBlocks(random, 21, 12);
    for (int32_t &entry : list)
      if (entry % 3 == 1)
        entry = -1;
    return list;
  });
  expectRight(c);
  for (double value : npy::toDoubles(c.buffers.out))
    ASSERT_TRUE(std::isfinite(value));
}

TEST_P(Lists, NanStaysInTheRowsThatSelectIt) {
  // Each fourth list takes the bad block; its neighbours in the tile do not.
  for (bool inKeys : {true, false}) {
    CpuCase c = makeCase(300, 700, 11);
    transform(inKeys ? c.buffers.k : c.buffers.v,
              [](int64_t, int64_t, int64_t t, int64_t d, double old) {
                return t == 70 && d == 5 ? kNan : old;
              });
    setLists(c, [](int64_t, int64_t row) -> std::vector<int32_t> {
      return row % 4 == 2 ? std::vector<int32_t>{0, 1, 3}
                          : std::vector<int32_t>{0, 2, 3};
    });
    expectRight(c);
    std::vector<double> out = npy::toDoubles(c.buffers.out);
    int64_t bad = std::count_if(out.begin(), out.end(),
                                [](double value) { return std::isnan(value); });
    EXPECT_GT(bad, 0);
    EXPECT_LE(bad, int64_t(out.size()) / 4 + 64);
  }
}

TEST_P(Lists, MinusInfinityLogits) {
  CpuCase c = makeCase(64, 256, 12);
  transform(c.buffers.q, [](int64_t, int64_t, int64_t, int64_t d, double) {
    return d == 0 ? 1.0 : 0.0;
  });
  // Block 1 wholly, block 2 in every other key.
  transform(c.buffers.k,
            [](int64_t, int64_t, int64_t t, int64_t d, double old) {
              bool there = t / 64 == 1 || (t / 64 == 2 && t % 2);
              return there && d == 0 ? -kInf : old;
            });
  setLists(c, [](int64_t, int64_t row) -> std::vector<int32_t> {
    switch (row % 4) {
    case 0:
      return {1};
    case 1:
      return {1, 2};
    case 2:
      return {2, 1};
    default:
      return {0, 1, 2};
    }
  });
  expectRight(c);
  // A row that sees such logits only is a row without keys.
  ASSERT_EQ(npy::toDoubles(c.buffers.lse)[0], -kInf);
  ASSERT_EQ(npy::toDoubles(c.buffers.out)[0], 0);
  expectFinite("out", c.buffers.out);
}

TEST_P(Lists, PlusInfinityLogits) {
  CpuCase c = makeCase(64, 256, 13);
  transform(c.buffers.q, [](int64_t, int64_t, int64_t, int64_t d, double) {
    return d == 0 ? 1.0 : 0.0;
  });
  transform(c.buffers.k,
            [](int64_t, int64_t, int64_t t, int64_t d, double old) {
              return t == 70 && d == 0 ? kInf : old;
            });
  setLists(c, [](int64_t, int64_t row) -> std::vector<int32_t> {
    return row % 2 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{0, 2};
  });
  expectRight(c);
}

//===----------------------------------------------------------------------===//
// Order and duplicates
//===----------------------------------------------------------------------===//

TEST_P(Lists, OrderDoesNotMatter) {
  std::mt19937 random(14);
  CpuCase unsorted = makeCase(300, 1300, 14);
  setLists(unsorted, [&](int64_t, int64_t row) {
    std::vector<int32_t> list = someBlocks(random, 21, 8);
    list.insert(list.begin() + row % 8, -1);
    return list;
  });
  CpuCase sorted = unsorted;
  auto *entries =
      reinterpret_cast<int32_t *>(sorted.buffers.indices.data.data());
  for (int64_t row = 0; row < sorted.buffers.indices.numElements();
       row += kWidth) {
    // -1 at the end.
    std::sort(entries + row, entries + row + kWidth,
              [](int32_t a, int32_t b) { return uint32_t(a) < uint32_t(b); });
  }
  expectRight(unsorted);
  sorted.attend();
  expectSameBits("out", sorted.buffers.out, unsorted.buffers.out);
  expectSameBits("lse", sorted.buffers.lse, unsorted.buffers.lse);
}

TEST_P(CheckedLists, DuplicatesAreReportedOnRequest) {
  std::mt19937 random(15);
  int64_t queryBlock = GetParam().queryBlock;
  CpuCase c = makeCase(80, 700, 15, /*batch=*/2);
  int64_t badRow = 40 / queryBlock, badHead = GetParam().kvHeads - 1;
  std::vector<int32_t> bad = {5, 0, -1, -1, 3, kMax, 7, 9, 0, -1};
  int visits = 0;
  setLists(c, [&](int64_t h, int64_t row) {
    // The second batch, and the last kv head.
    bool here = h == badHead && row == badRow && ++visits == 2;
    return here ? bad : someBlocks(random, 11, 8);
  });
  EXPECT_EQ(visits, 2);

  CpuCase checked = c;
  checked.options.checkInputs = true;
  allocateOutputs(checked.problem, checked.buffers);
  Invocation invocation(getPool());
  std::string text = checked.tryAttend(invocation);
  EXPECT_EQ(
      text,
      "expected the entries of a list of blocks to be distinct, but block "
      "0 stands twice in the list of batch 1, kv head " +
          std::to_string(badHead) + ", query block " + std::to_string(badRow));
  EXPECT_EQ(checked.tryAttend(invocation), text); // again

  // Not reported without, and that row alone is unspecified, but finite.
  c.attend();
  expectFinite("out", c.buffers.out);
  expectFinite("lse", c.buffers.lse);
  CpuCase clean = c;
  auto *entry =
      reinterpret_cast<int32_t *>(clean.buffers.indices.data.data()) +
      ((1 * GetParam().kvHeads + badHead) * (80 / queryBlock) + badRow) *
          kWidth +
      8;
  ASSERT_EQ(*entry, 0);
  *entry = -1;
  expectRight(clean);
  int64_t group = c.shape().groupSize();
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < c.shape().heads; ++h)
      for (int64_t t = 0; t < 80; ++t)
        if (b != 1 || h / group != badHead || t / queryBlock != badRow)
          ASSERT_EQ(rowBytes(c.buffers.out, b, h, t),
                    rowBytes(clean.buffers.out, b, h, t))
              << "batch " << b << ", head " << h << ", query " << t;

  // Entries that stand for nothing may be there twice, and clean lists pass.
  setLists(checked, [&](int64_t, int64_t row) -> std::vector<int32_t> {
    return {-1, 3, -1, 1, 0, -1, 5};
  });
  expectRight(checked);
}

} // namespace
