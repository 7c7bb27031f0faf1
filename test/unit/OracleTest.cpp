//===- OracleTest.cpp - The oracle against results worked out by hand -----===//

#include "pisa/Oracle/Oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace pisa::oracle;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> randomValues(int64_t count, int seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double &value : values)
    value = normal(generator);
  return values;
}

/// One head, D = Dv = 1, scale 1, C = 1, g = 2: a leaf is a key, and with q = 1
/// its exact score is the key's value.
Problem line(int64_t queries, int64_t keys, int64_t topk) {
  Problem p;
  p.batch = p.heads = p.kvHeads = p.headDim = p.valueDim = 1;
  p.queryLength = queries;
  p.keyLength = keys;
  p.kLen = {int32_t(keys)};
  p.params.blockSize = 1;
  p.params.leafAtoms = 1;
  p.params.topk = topk;
  p.threads = 1;
  return p;
}

/// Selects on unrounded summaries.
Selection selectOn(const Problem &p, const std::vector<double> &q,
                   const std::vector<double> &k) {
  EXPECT_EQ(validate(p), std::nullopt);
  std::vector<double> pyramid = buildPyramid(p, k.data()), atoms;
  std::vector<int32_t> outlier;
  buildAtoms(p, k.data(), atoms, outlier);
  return select(p, q.data(), k.data(), pyramid.data(), atoms.data(),
                outlier.data());
}

SelectionReport check(const Problem &p, const std::vector<double> &q,
                      const std::vector<double> &k,
                      const std::vector<int32_t> &indices, double relTol) {
  std::vector<double> pyramid = buildPyramid(p, k.data()), atoms;
  std::vector<int32_t> outlier;
  buildAtoms(p, k.data(), atoms, outlier);
  return checkSelection(p, q.data(), k.data(), pyramid.data(), atoms.data(),
                        outlier.data(), indices.data(), relTol);
}

using Indices = std::vector<int32_t>;

//===----------------------------------------------------------------------===//
// Validation
//===----------------------------------------------------------------------===//

TEST(Validate, AcceptsTheDefaults) {
  Problem p = line(4, 8, 16);
  p.params = Params();
  EXPECT_EQ(validate(p), std::nullopt);
}

TEST(Validate, NamesArgumentAllowedAndValue) {
  auto expectError = [](const char *message, auto change) {
    Problem p = line(4, 8, 4);
    change(p);
    EXPECT_EQ(validate(p), std::optional<std::string>(message));
  };
  expectError("expected block_size to be at least 1, but got 0",
              [](Problem &p) { p.params.blockSize = 0; });
  expectError("expected fanout to be at least 2, but got 1",
              [](Problem &p) { p.params.fanout = 1; });
  expectError("expected topk to be at least 1, but got 0",
              [](Problem &p) { p.params.topk = 0; });
  expectError("expected query_block to be at least 1, but got 0",
              [](Problem &p) { p.params.queryBlock = 0; });
  expectError("expected sink_blocks to be at least 0, but got -1",
              [](Problem &p) { p.params.sinkBlocks = -1; });
  expectError("expected local_blocks to be at least 1 in causal attention, but "
              "got 0",
              [](Problem &p) { p.params.localBlocks = 0; });
  expectError("expected topk to be at least 3, the number of forced blocks, "
              "but got 2",
              [](Problem &p) { p.params.topk = 2; });
  // Q = 4 queries in leaves of one key: 1 + 2 + 3 forced.
  expectError("expected topk to be at least 6, the number of forced blocks, "
              "but got 5",
              [](Problem &p) {
                p.params.topk = 5;
                p.params.queryBlock = 4;
              });
  expectError("expected beam to be at least 4 (topk), but got 3",
              [](Problem &p) { p.params.beam = 3; });
  for (int64_t rerank : {-1, 3, 9})
    expectError(("expected rerank to be absent, 0 or in [4, 8] (topk to fanout "
                 "* beam), but got " +
                 std::to_string(rerank))
                    .c_str(),
                [&](Problem &p) { p.params.rerank = rerank; });
  expectError("expected leaf_atoms to be a divisor of block_size 8, but got 3",
              [](Problem &p) {
                p.params.blockSize = 8;
                p.params.leafAtoms = 3;
                p.params.rerank = 0;
              });
  expectError("expected heads to be a multiple of kv_heads 2, but got 3",
              [](Problem &p) {
                p.heads = 3;
                p.kvHeads = 2;
              });
  expectError("expected head_dim to be at least 1, but got 0",
              [](Problem &p) { p.headDim = 0; });
  expectError("expected query_length to be at most key_length 8 in causal "
              "attention without q_start, but got 9",
              [](Problem &p) { p.queryLength = 9; });
  expectError("expected the size of k_len to be 1 (batch), but got 2",
              [](Problem &p) { p.kLen = {1, 2}; });
  expectError("expected the size of q_start to be 1 (batch), but got 0",
              [](Problem &p) { p.qStart.emplace(); });
  expectError("expected k_len[0] to be in [0, 8], but got 9",
              [](Problem &p) { p.kLen = {9}; });
  expectError("expected q_start[0] to be a multiple of query_block 2, but got "
              "3",
              [](Problem &p) {
                p.params.queryBlock = 2;
                p.qStart = {{3}};
              });
}

TEST(Validate, LeafAtomsMatterOnlyToTheRerank) {
  Problem p = line(4, 8, 4);
  p.params.leafAtoms = 3;
  EXPECT_EQ(validate(p), std::nullopt);
}

TEST(Validate, NothingIsForcedWithoutAPosition) {
  Problem p = line(4, 8, 1);
  p.params.causal = false;
  EXPECT_EQ(validate(p), std::nullopt);
  p.qStart = {{0}};
  EXPECT_NE(validate(p), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Pyramid
//===----------------------------------------------------------------------===//

TEST(Pyramid, LayoutIsPackedLevelByLevel) {
  PyramidLayout layout(/*capacity=*/9, /*blockSize=*/2, /*fanout=*/2);
  EXPECT_EQ(layout.levelNodes, (std::vector<int64_t>{5, 3, 2, 1}));
  EXPECT_EQ(layout.levelOffset, (std::vector<int64_t>{0, 5, 8, 10}));
  EXPECT_EQ(layout.numNodes, 11);
  EXPECT_EQ(PyramidLayout(0, 2, 2).numNodes, 0);
  EXPECT_EQ(PyramidLayout(2, 2, 2).numNodes, 1);
}

TEST(Pyramid, RaggedTailsAreWeightedByCount) {
  // Capacity 6, of which 5 keys exist; the slack holds NaN.
  Problem p = line(1, 6, 4);
  p.params.blockSize = 2;
  p.kLen = {5};
  std::vector<double> k = {1, 3, 5, 7, 10, nan};
  // Three leaves, two nodes over them, and the root over all five keys.
  EXPECT_EQ(buildPyramid(p, k.data()),
            (std::vector<double>{2, 6, 10, 4, 10, 26.0 / 5}));
  p.kLen = {3};
  EXPECT_EQ(buildPyramid(p, k.data()), (std::vector<double>{2, 5, 0, 3, 0, 3}));
}

TEST(Pyramid, AtomsLeaveTheOutlierOut) {
  Problem p = line(1, 8, 4);
  p.params.blockSize = 4;
  p.params.leafAtoms = 2;
  p.kLen = {7};
  std::vector<double> k = {1, 9, 2, 4, /*leaf 1*/ 0, 2, 1, nan};
  std::vector<double> atoms;
  std::vector<int32_t> outlier;
  buildAtoms(p, k.data(), atoms, outlier);
  // Leaf 0: mean 4, outlier 9. Leaf 1: mean 1, 0 and 2 are equally far.
  EXPECT_EQ(outlier, (Indices{1, 4}));
  EXPECT_EQ(atoms, (std::vector<double>{1, 3, 2, 1}));
  // One key in leaf 1: it is the outlier, and nothing is left.
  p.kLen = {5};
  buildAtoms(p, k.data(), atoms, outlier);
  EXPECT_EQ(outlier, (Indices{1, 4}));
  EXPECT_EQ(atoms, (std::vector<double>{1, 3, 0, 0}));
  p.kLen = {4};
  buildAtoms(p, k.data(), atoms, outlier);
  EXPECT_EQ(outlier, (Indices{1, -1}));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

TEST(Select, BestLeafJoinsTheForcedOnes) {
  // Levels of 4, 2, 1 nodes; K = 4 of the 7 leaves, W = 4 keeps every node.
  Problem p = line(1, 7, 4);
  p.scale = 2;
  Selection s = selectOn(p, {1}, {0, 1, 5, 2, 4, 0, 0});
  EXPECT_EQ(s.indices, (Indices{0, 2, 5, 6}));
  EXPECT_EQ(s.count, (Indices{4}));
  EXPECT_EQ(s.scores, (std::vector<double>{0, 10, 0, 0}));
  EXPECT_EQ(s.margin, (std::vector<double>{2})); // 2 * (5 - 4)
}

TEST(Select, NodesAreRankedByTheirChildren) {
  // 16 leaves, W = K = 4. Forced: leaves 0, 14, 15, level-2 nodes 0 and 7.
  // Node 1 (leaves 2, 3) has the single best leaf, and node 2 the best sum; two
  // places are free, so both stay and node 3 is dropped.
  Problem p = line(1, 16, 4);
  std::vector<double> k(16, 0.0);
  k[2] = 5;
  k[4] = k[5] = 4.5;
  k[6] = 4;
  Selection s = selectOn(p, {1}, k);
  EXPECT_EQ(s.indices, (Indices{0, 2, 14, 15}));
  EXPECT_DOUBLE_EQ(s.margin[0], 0.5);
  // With 32 leaves a level above prunes as well: nodes of four leaves.
  p = line(1, 32, 4);
  k.assign(32, 0.0);
  // Means mis-rank: leaf 8 is the best, but its node of four averages 0.
  k[8] = 6;
  k[9] = -6;
  k[10] = k[11] = 0;
  for (int64_t t : {4, 5, 6, 7, 12, 13, 14, 15})
    k[t] = 1;
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 4, 30, 31}));
  p.params.beam = 8; // A wider beam finds it.
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 8, 30, 31}));
}

TEST(Select, TiesGoToTheLowerIndex) {
  Problem p = line(1, 40, 6);
  Selection s = selectOn(p, {1}, std::vector<double>(40, 0.0));
  EXPECT_EQ(s.indices, (Indices{0, 1, 2, 3, 38, 39}));
  EXPECT_EQ(s.margin, (std::vector<double>{0}));
  std::vector<double> k(40, 0.0);
  k[1] = -0.0; // Equal to 0.
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 1, 2, 3, 38, 39}));
}

TEST(Select, InfinitiesFirstAndLastThenNaN) {
  // All nodes are kept (W = 8), so leaves 1..5 compete for K - 3 places.
  auto run = [](int64_t topk, std::vector<double> middle) {
    Problem p = line(1, 8, topk);
    p.params.beam = 8;
    std::vector<double> k = {0};
    k.insert(k.end(), middle.begin(), middle.end());
    k.resize(8, 0.0);
    Indices found;
    for (int32_t index : selectOn(p, {1}, k).indices)
      if (index >= 1 && index <= 5)
        found.push_back(index);
    return found;
  };
  std::vector<double> middle = {nan, -inf, 3, inf, nan};
  EXPECT_EQ(run(4, middle), (Indices{4}));
  EXPECT_EQ(run(5, middle), (Indices{3, 4}));
  EXPECT_EQ(run(6, middle), (Indices{2, 3, 4}));
  EXPECT_EQ(run(7, middle), (Indices{1, 2, 3, 4}));
  EXPECT_EQ(run(4, {inf, inf, inf, inf, inf}), (Indices{1}));
}

TEST(Select, MarginOfNonNumbers) {
  auto margin = [](double kept, double dropped) {
    Problem p = line(1, 5, 4);
    return selectOn(p, {1}, {0, kept, dropped, 0, 0}).margin[0];
  };
  EXPECT_EQ(margin(inf, 1), inf);
  EXPECT_EQ(margin(inf, inf), 0);
  EXPECT_EQ(margin(1, nan), inf);
  EXPECT_EQ(margin(nan, nan), 0);
}

TEST(Select, CausalRowsSeeNoFutureLeaf) {
  Problem p = line(6, 6, 4);
  Selection s = selectOn(p, std::vector<double>(6, 1.0), {0, 9, 8, 7, 6, 5});
  EXPECT_EQ(s.indices, (Indices{0, -1, -1, -1, //
                                0, 1,  -1, -1, //
                                0, 1,  2,  -1, //
                                0, 1,  2,  3,  //
                                0, 1,  3,  4,  //
                                0, 1,  4,  5}));
  EXPECT_EQ(s.count, (Indices{1, 2, 3, 4, 4, 4}));
  EXPECT_EQ(s.scores[1], -inf);
  EXPECT_EQ(s.margin[3], inf);
}

TEST(Select, PositionsOutsideTheKeys) {
  // Lengths of 2 and 0 keys, capacity 8; queries 2 and 1 before the first key.
  Problem p = line(4, 8, 4);
  p.batch = 2;
  p.kLen = {2, 0};
  std::vector<double> k(16, 0.0);
  Selection s = selectOn(p, std::vector<double>(8, 1.0), k);
  Indices expected(32, -1);
  expected[8] = expected[12] = 0;
  expected[13] = 1;
  EXPECT_EQ(s.indices, expected);
  EXPECT_EQ(s.count, (Indices{0, 0, 1, 2, 0, 0, 0, 0}));

  // Past the keys: position 9 has leaf 8 as its previous one, which does not
  // exist, and so only the sink is forced.
  p = line(1, 8, 4);
  p.qStart = {{9}};
  k = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 5, 6, 7}));
  EXPECT_EQ(selectOn(p, {-1}, k).indices, (Indices{0, 1, 2, 3}));
  p.qStart = {{8}}; // Now leaf 7 is the previous one.
  EXPECT_EQ(selectOn(p, {-1}, k).indices, (Indices{0, 1, 2, 7}));
}

TEST(Select, MoreBlocksAskedForThanThereAre) {
  Problem p = line(1, 3, 8);
  EXPECT_EQ(selectOn(p, {1}, {nan, 1, 2}).indices,
            (Indices{0, 1, 2, -1, -1, -1, -1, -1}));
}

TEST(Select, ForcedNodesOverlap) {
  // Sink 3, local 3 at position 4: leaves 0, 1, 2 and 2, 3, 4.
  Problem p = line(1, 6, 6);
  p.params.sinkBlocks = p.params.localBlocks = 3;
  p.qStart = {{4}};
  EXPECT_EQ(selectOn(p, {1}, {0, 0, 0, 0, 0, 9}).indices,
            (Indices{0, 1, 2, 3, 4, -1}));
  // Position 1: the sink leaf 2 is in the future.
  p.qStart = {{1}};
  EXPECT_EQ(selectOn(p, {1}, {0, 0, 0, 0, 0, 9}).indices,
            (Indices{0, 1, -1, -1, -1, -1}));
}

TEST(Select, NonCausal) {
  Problem p = line(2, 8, 3);
  p.params.causal = false;
  std::vector<double> k = {0, 1, 2, 3, 4, 5, 6, 7};
  // No position: nothing is forced.
  EXPECT_EQ(selectOn(p, {1, -1}, k).indices, (Indices{5, 6, 7, 0, 1, 2}));
  // With one: the forced leaves of causal attention, and the best of all.
  p.params.topk = 4;
  p.qStart = {{4}};
  EXPECT_EQ(selectOn(p, {1, -1}, k).indices, (Indices{0, 3, 4, 7, 0, 1, 4, 5}));
  // Before the first key nothing is forced, and everything is seen.
  p.qStart = {{-2}};
  EXPECT_EQ(selectOn(p, {1, 1}, k).indices, (Indices{4, 5, 6, 7, 4, 5, 6, 7}));
  // Without local leaves, the sink alone.
  p.qStart = {{4}};
  p.params.localBlocks = 0;
  EXPECT_EQ(selectOn(p, {1, -1}, k).indices, (Indices{0, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(Select, NonCausalReadsIncompleteTails) {
  // Leaves of two keys; the last holds the single key 4, which as half of a
  // full leaf would lose against 3.
  Problem p = line(1, 6, 1);
  p.params.causal = false;
  p.params.blockSize = 2;
  p.kLen = {5};
  Selection s = selectOn(p, {1}, {3, 3, -1e4, -1e4, 4, nan});
  EXPECT_EQ(s.indices, (Indices{2}));
  EXPECT_EQ(s.scores, (std::vector<double>{4}));
  EXPECT_NEAR(s.margin[0], 4 - (3 + std::log(2)), 1e-12);
}

TEST(Select, QueryBlocksShareOneSelection) {
  // Q = 2 over queries at 6, 7 and the ragged 8; K = 1 + 2 + 1 forced + 1.
  Problem p = line(3, 10, 5);
  p.params.queryBlock = 2;
  p.qStart = {{6}};
  std::vector<double> k = {0, 3, 1, 2, 0, 0, 0, 0, 0, 9};
  // Scores of leaf t add up to (q6 + q7) * k[t]: the second query decides.
  Selection s = selectOn(p, {1, -2, 1}, k);
  // Block 0 forces 0, 5, 6, 7, block 1 forces 0, 7, 8 and does not see leaf 9,
  // although its missing second query would.
  EXPECT_EQ(s.indices, (Indices{0, 4, 5, 6, 7, 0, 1, 3, 7, 8}));
  EXPECT_EQ(s.scores[1], 0);
  EXPECT_EQ(s.count, (Indices{5, 5}));
  // Without a position, blocks count from query 0 and nothing is forced.
  p.params.causal = false;
  p.params.topk = 1;
  p.params.beam = 8;
  p.qStart.reset();
  EXPECT_EQ(selectOn(p, {1, -2, 1}, k).indices, (Indices{0, 9}));
}

TEST(Select, HeadsOfAGroupShareOneSelection) {
  // Two kv heads, G = 2. Scores of kv head 0 are (1 + -3) k, of head 1 (0 + 1)
  // k.
  Problem p = line(1, 6, 4);
  p.heads = 4;
  p.kvHeads = 2;
  std::vector<double> k = {0, 1, 2, 3, 0, 0, 0, 1, 2, 3, 0, 0};
  Selection s = selectOn(p, {1, -3, 0, 1}, k);
  EXPECT_EQ(s.indices, (Indices{0, 1, 4, 5, 0, 3, 4, 5}));
  EXPECT_EQ(s.scores[1], -2);
}

TEST(Select, PreScoreAndRerank) {
  // Leaves of four keys, one atom and the outlier. Leaf 1 spreads its keys
  // (2, 2, -2, -2), so its pre-score is below that of leaf 2 (all 1), while its
  // exact score is above.
  Problem p = line(1, 24, 4);
  p.scale = 3;
  p.params.blockSize = 4;
  std::vector<double> k(24, 0.0);
  k[4] = k[5] = 2;
  k[6] = k[7] = -2;
  for (int64_t t = 8; t < 12; ++t)
    k[t] = 1.8;
  k[12] = 1; // Leaf 3 is below both.
  p.params.beam = 8;
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 2, 4, 5}));
  k[6] = k[7] = 2; // Now leaf 1 is the best, both ways.
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 1, 4, 5}));

  k[6] = k[7] = 1;
  k[5] = 2.4;
  // exact: leaf 1 has 2, 2.4, 1, 1, leaf 2 has 1.8 four times.
  double exact1 = std::log(std::exp(6.) + std::exp(7.2) + 2 * std::exp(3.));
  double exact2 = 5.4 + std::log(4);
  // pre: leaf 1 is the mean 4/3 of three keys and the outlier 2.4.
  double pre1 = std::log(3 * std::exp(4.) + std::exp(7.2));
  double pre2 = 5.4 + std::log(4);
  ASSERT_GT(exact1, exact2);
  ASSERT_GT(pre1, pre2);
  Selection s = selectOn(p, {1}, k);
  EXPECT_EQ(s.indices, (Indices{0, 1, 4, 5}));
  EXPECT_NEAR(s.scores[1], exact1, 1e-12);
  EXPECT_NEAR(s.margin[0], exact1 - exact2, 1e-12);
  p.params.rerank = 0;
  s = selectOn(p, {1}, k);
  EXPECT_NEAR(s.scores[1], pre1, 1e-12);
  EXPECT_NEAR(s.margin[0], pre1 - pre2, 1e-12);

  // Spread below the mean's view: pre ranks leaf 2 first, exact leaf 1.
  k[4] = k[5] = 2.2;
  k[6] = 2.2;
  k[7] = -9; // The outlier.
  for (int64_t t = 8; t < 12; ++t)
    k[t] = 2.1;
  p.params.leafAtoms = 2;
  p.params.rerank = 0;
  // The atoms of leaf 1 hold 2 and 1 keys at 2.2: exactly its keys.
  EXPECT_NEAR(selectOn(p, {1}, k).scores[1], 6.6 + std::log(3), 1e-9);
  p.params.rerank = 5; // Two free leaves get the exact score.
  EXPECT_NEAR(selectOn(p, {1}, k).scores[1], 6.6 + std::log(3), 1e-9);
}

TEST(Select, RerankCutsByThePreScoreFirst) {
  // R = K: the exact scores have nothing to choose from, pre decides alone.
  Problem p = line(1, 24, 4);
  p.params.blockSize = 4;
  p.params.beam = 8;
  std::vector<double> k(24, 0.0);
  // Leaf 1: the mean hides 5 and -5 behind the outlier -8. Leaf 2: all 2.
  k[4] = 5, k[5] = 5, k[6] = -5, k[7] = -8;
  for (int64_t t = 8; t < 12; ++t)
    k[t] = 2;
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 1, 4, 5}));
  for (int64_t rerank : {0, 4}) {
    p.params.rerank = rerank;
    EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 2, 4, 5}));
  }
  p.params.rerank = 5;
  EXPECT_EQ(selectOn(p, {1}, k).indices, (Indices{0, 1, 4, 5}));
}

TEST(Select, NaNPastTheLengthIsNeverRead) {
  Problem p = line(5, 32, 4);
  p.params.blockSize = 2;
  p.params.leafAtoms = 2;
  p.params.rerank = 4;
  p.kLen = {21};
  std::vector<double> q = randomValues(5, 1), k = randomValues(32, 2);
  Selection clean = selectOn(p, q, k);
  std::fill(k.begin() + 21, k.end(), nan);
  Selection dirty = selectOn(p, q, k);
  EXPECT_EQ(clean.indices, dirty.indices);
  EXPECT_EQ(clean.scores, dirty.scores);
  // Causal summaries of incomplete nodes are never read either.
  std::vector<double> pyramid = buildPyramid(p, k.data()), atoms;
  std::vector<int32_t> outlier;
  buildAtoms(p, k.data(), atoms, outlier);
  PyramidLayout layout(32, 2, 2);
  for (int64_t level = 1; level <= layout.numLevels(); ++level)
    for (int64_t n = 21 / (2 << (level - 1)); n < layout.levelNodes[level - 1];
         ++n)
      pyramid[layout.levelOffset[level - 1] + n] = nan;
  atoms[20] = atoms[21] = nan;
  outlier[10] = 12345;
  EXPECT_EQ(select(p, q.data(), k.data(), pyramid.data(), atoms.data(),
                   outlier.data())
                .indices,
            clean.indices);
}

//===----------------------------------------------------------------------===//
// checkSelection
//===----------------------------------------------------------------------===//

TEST(CheckSelection, AcceptsTheExactAnswerOnRandomProblems) {
  for (int seed = 0; seed < 24; ++seed) {
    Problem p;
    p.batch = 2;
    p.kvHeads = 2;
    p.heads = 4;
    p.queryLength = 37;
    p.keyLength = 150 + seed;
    p.kLen = {int32_t(140 + seed), 75};
    p.headDim = p.valueDim = 4;
    p.scale = 0.5;
    p.params.blockSize = 4;
    p.params.leafAtoms = 2;
    p.params.fanout = 2 + seed % 3;
    p.params.topk = 6;
    p.params.causal = seed % 2 == 0;
    if (seed % 4 >= 2)
      p.params.beam = 9;
    if (seed % 3 == 1)
      p.params.rerank = 7;
    if (seed % 3 == 2)
      p.params.rerank = 0;
    if (seed % 5 == 4) {
      p.params.queryBlock = 8;
      p.qStart = {{96, 32}};
    }
    std::vector<double> q = randomValues(2 * 4 * 37 * 4, seed);
    std::vector<double> k = randomValues(2 * 2 * p.keyLength * 4, 100 + seed);
    Indices indices = selectOn(p, q, k).indices;
    SelectionReport exact = check(p, q, k, indices, 0);
    EXPECT_EQ(exact.rows, 2 * 2 * p.numQueryBlocks());
    EXPECT_EQ(exact.tieRows, 0);
    EXPECT_EQ(exact.wrongRows, 0) << exact.firstError;
    SelectionReport loose = check(p, q, k, indices, 1e-2);
    EXPECT_GT(loose.tieRows, 0);
    EXPECT_EQ(loose.wrongRows, 0) << loose.firstError;
  }
}

TEST(CheckSelection, RejectsWrongSelections) {
  Problem p = line(1, 7, 4);
  std::vector<double> q = {1}, k = {0, 1, 5, 2, 4, 0, 0};
  auto error = [&](Indices indices) {
    SelectionReport report = check(p, q, k, indices, 1e-5);
    EXPECT_EQ(report.tieRows, 0);
    EXPECT_EQ(report.wrongRows, report.firstError.empty() ? 0 : 1);
    return report.firstError;
  };
  std::string where = "batch 0, kv head 0, query block 0: ";
  EXPECT_EQ(error({0, 2, 5, 6}), "");
  EXPECT_EQ(error({0, 4, 5, 6}),
            where + "block 2 is missing, and not by rounding");
  EXPECT_EQ(error({0, 2, 4, 6}), where + "the forced block 5 is missing");
  EXPECT_EQ(error({0, 2, 6, 5}), where + "entry 3 is 5, expected more than 6");
  EXPECT_EQ(error({0, 2, 2, 6}), where + "entry 2 is 2, expected more than 2");
  EXPECT_EQ(error({0, 5, 6, -1}),
            where + "entry 3 is -1, expected a block in [0, 7)");
  EXPECT_EQ(error({0, 5, 6, 7}),
            where + "entry 3 is 7, expected a block in [0, 7)");
  p = line(1, 2, 4);
  k = {0, 0};
  EXPECT_EQ(error({0, 1, -1, -1}), "");
  EXPECT_EQ(error({0, 1, 2, -1}),
            where + "entry 2 is 2, expected -1 after 2 blocks");
}

TEST(CheckSelection, AcceptsEitherSideOfATie) {
  Problem p = line(1, 7, 4);
  std::vector<double> q = {1}, k = {0, 1, 5, 2, 5 - 1e-9, 0, 0};
  for (int32_t choice : {2, 4}) {
    SelectionReport report = check(p, q, k, {0, choice, 5, 6}, 1e-5);
    EXPECT_EQ(report.tieRows, 1);
    EXPECT_EQ(report.wrongRows, 0) << report.firstError;
  }
  // Leaf 3 is no part of the tie, and the exact check knows no ties.
  EXPECT_EQ(check(p, q, k, {0, 3, 5, 6}, 1e-5).wrongRows, 1);
  EXPECT_EQ(check(p, q, k, {0, 2, 5, 6}, 0).wrongRows, 0);
  EXPECT_EQ(check(p, q, k, {0, 4, 5, 6}, 0).wrongRows, 1);
}

TEST(CheckSelection, TiesAboveTheLeavesReachThem) {
  // Level-2 nodes 1 and 2 tie for one place (W = K = 4; 0, 6, 7 are forced),
  // but the better leaf, 5, is below node 2.
  Problem p = line(1, 16, 4);
  p.qStart = {{14}};
  p.params.localBlocks = 2; // Leaves 13 and 14: nodes 6 and 7.
  std::vector<double> q = {1}, k(16, 0.0);
  k[2] = k[3] = 3;
  k[4] = 2;
  k[5] = std::log(2 * std::exp(3.) - std::exp(2.));
  for (int32_t choice : {2, 5}) {
    SelectionReport report = check(p, q, k, {0, choice, 13, 14}, 1e-5);
    EXPECT_EQ(report.tieRows, 1);
    EXPECT_EQ(report.wrongRows, 0) << report.firstError;
  }
  // Node 3 is no part of the tie.
  EXPECT_EQ(check(p, q, k, {0, 6, 13, 14}, 1e-5).wrongRows, 1);
}

/// A problem whose keys and queries take few values, so that many scores tie.
Problem tied(std::vector<double> &q, std::vector<double> &k, int seed) {
  Problem p;
  p.batch = 1;
  p.heads = 2;
  p.kvHeads = 1;
  p.queryLength = p.keyLength = 120;
  p.kLen = {120};
  p.headDim = p.valueDim = 2;
  p.params.blockSize = 2;
  p.params.leafAtoms = 2;
  p.params.topk = 5;
  p.params.beam = 7;
  if (seed % 2)
    p.params.rerank = 6;
  q = randomValues(2 * 120 * 2, seed);
  k = randomValues(120 * 2, seed + 100);
  for (auto *values : {&q, &k})
    for (double &value : *values)
      value = std::round(value);
  return p;
}

TEST(CheckSelection, AcceptsWhatRoundingMayDo) {
  for (int seed = 0; seed < 6; ++seed) {
    std::vector<double> q, k, noise = randomValues(480, 7 + seed);
    Problem p = tied(q, k, seed);
    std::vector<double> pyramid = buildPyramid(p, k.data()), atoms;
    std::vector<int32_t> outlier;
    buildAtoms(p, k.data(), atoms, outlier);
    // An implementation with errors of about 1e-9 breaks ties at random.
    std::vector<double> inexact = q;
    for (size_t i = 0; i < inexact.size(); ++i)
      inexact[i] += 1e-9 * noise[i];
    Indices indices = select(p, inexact.data(), k.data(), pyramid.data(),
                             atoms.data(), outlier.data())
                          .indices;
    SelectionReport report = check(p, q, k, indices, 1e-5);
    EXPECT_GT(report.tieRows, 10);
    EXPECT_EQ(report.wrongRows, 0) << report.firstError;
    EXPECT_GT(check(p, q, k, indices, 0).wrongRows, 0);
  }
}

TEST(CheckSelection, RejectsOtherMethods) {
  // The same problem with another beam, or without the re-rank: wrong rows
  // that no tie excuses.
  for (int change = 0; change < 3; ++change) {
    std::vector<double> q, k;
    Problem p = tied(q, k, 1), other;
    // More keys to an atom, or the pre-score would be the exact score.
    p.params.blockSize = 4;
    p.params.leafAtoms = 1;
    q = randomValues(q.size(), 1);
    k = randomValues(k.size(), 2);
    other = p;
    if (change == 0)
      other.params.beam = 40;
    else if (change == 1)
      other.params.rerank = 0;
    else
      other.params.fanout = 3;
    EXPECT_GT(check(p, q, k, selectOn(other, q, k).indices, 1e-5).wrongRows, 2);
    EXPECT_EQ(check(p, q, k, selectOn(p, q, k).indices, 1e-5).wrongRows, 0);
  }
}

TEST(CheckSelection, InfinitiesAndNaNAreNoTies) {
  Problem p = line(1, 6, 4);
  std::vector<double> q = {1};
  EXPECT_EQ(check(p, q, {0, inf, inf, 1, 0, 0}, {0, 2, 4, 5}, 1e-5).wrongRows,
            1);
  SelectionReport report =
      check(p, q, {0, nan, -inf, -inf, 0, 0}, {0, 2, 4, 5}, 1e-5);
  // W = 4 keeps all three nodes, hence no cut above the leaves.
  EXPECT_EQ(report.wrongRows, 0) << report.firstError;
  EXPECT_EQ(report.tieRows, 0);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct AttentionResult {
  std::vector<double> out, lse;
};

AttentionResult attendOn(const Problem &p, const std::vector<double> &q,
                         const std::vector<double> &k,
                         const std::vector<double> &v, const Indices &indices,
                         int64_t listWidth) {
  EXPECT_EQ(validate(p), std::nullopt);
  int64_t rows = p.batch * p.heads * p.queryLength;
  AttentionResult result;
  result.out.assign(rows * p.valueDim, nan);
  result.lse.assign(rows, nan);
  attend(p, q.data(), k.data(), v.data(), indices.data(), listWidth,
         result.out.data(), result.lse.data());
  return result;
}

/// Leaves of four keys, all logits 0: the output is the mean of the values.
Problem zeros(int64_t keys) {
  Problem p = line(1, keys, 4);
  p.params.blockSize = 4;
  return p;
}

TEST(Attend, PaddingAnywhere) {
  Problem p = zeros(8);
  std::vector<double> q = {1}, k(8, 0.0), v = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const Indices &list : {Indices{-1, 1, -1, -1}, Indices{1, -1, -1, -1},
                              Indices{-1, -1, -1, 1}}) {
    AttentionResult r = attendOn(p, q, k, v, list, 4);
    EXPECT_NEAR(r.out[0], 6.5, 1e-12);
    EXPECT_NEAR(r.lse[0], std::log(4), 1e-12);
  }
  Indices wide(18, -1);
  AttentionResult r = attendOn(p, q, k, v, wide, 18);
  EXPECT_EQ(r.out[0], 0);
  EXPECT_EQ(r.lse[0], -inf);
  wide[16] = 0; // The first 16 entries are -1.
  r = attendOn(p, q, k, v, wide, 18);
  EXPECT_NEAR(r.out[0], 2.5, 1e-12);
}

TEST(Attend, OutOfRangeFutureAndDuplicateEntries) {
  Problem p = zeros(8);
  std::vector<double> q = {1}, k(8, 0.0), v = {1, 2, 3, 4, 5, 6, 7, 8};
  constexpr int32_t huge = std::numeric_limits<int32_t>::max();
  AttentionResult r = attendOn(p, q, k, v, {huge, 0, 2, -7, 0, -huge - 1}, 6);
  EXPECT_NEAR(r.out[0], 2.5, 1e-12);
  // At position 5 block 1 is cut in the middle; at 3 it is in the future.
  p.qStart = {{5}};
  EXPECT_NEAR(attendOn(p, q, k, v, {1}, 1).out[0], 5.5, 1e-12);
  p.qStart = {{3}};
  EXPECT_EQ(attendOn(p, q, k, v, {1}, 1).lse[0], -inf);
  p.params.causal = false;
  EXPECT_NEAR(attendOn(p, q, k, v, {1}, 1).out[0], 6.5, 1e-12);
}

TEST(Attend, PartialLastBlockAndSlack) {
  // One key in the last block, NaN after it: no exp(0), no 0 * NaN. The block
  // that nobody selects holds NaN too.
  Problem p = zeros(12);
  p.kLen = {9};
  std::vector<double> q = {1}, k(12, 0.0), v(12, 1.0);
  v[8] = 5;
  for (int64_t t : {4, 5, 6, 7, 9, 10, 11})
    k[t] = v[t] = nan;
  AttentionResult r = attendOn(p, q, k, v, {0, 2, -1, -1}, 4);
  EXPECT_NEAR(r.out[0], 9.0 / 5, 1e-12);
  EXPECT_NEAR(r.lse[0], std::log(5), 1e-12);
}

TEST(Attend, LogitsOfAnySize) {
  Problem p = zeros(4);
  std::vector<double> q = {1}, v = {1, 2, 3, 4};
  AttentionResult r = attendOn(p, q, {1e4, -1e4, 0, 1e4}, v, {0}, 1);
  EXPECT_NEAR(r.out[0], 2.5, 1e-9);
  EXPECT_NEAR(r.lse[0], 1e4 + std::log(2), 1e-9);
  r = attendOn(p, q, {-inf, 0, -inf, -inf}, v, {0}, 1);
  EXPECT_EQ(r.out[0], 2);
  r = attendOn(p, q, {-inf, -inf, -inf, -inf}, v, {0}, 1);
  EXPECT_EQ(r.out[0], 0);
  EXPECT_EQ(r.lse[0], -inf);
  r = attendOn(p, q, {inf, 0, 0, 0}, v, {0}, 1);
  EXPECT_TRUE(std::isnan(r.out[0]));
  EXPECT_EQ(r.lse[0], inf);
  r = attendOn(p, q, {nan, 0, 0, 0}, v, {0}, 1);
  EXPECT_TRUE(std::isnan(r.out[0]));
  EXPECT_TRUE(std::isnan(r.lse[0]));
}

TEST(Attend, NoKeysAndPositionsBeforeThem) {
  Problem p = zeros(8);
  p.queryLength = 3;
  p.kLen = {1};
  std::vector<double> q(3, 1.0), k(8, nan), v(8, nan);
  k[0] = 2;
  v[0] = 7;
  AttentionResult r = attendOn(p, q, k, v, {0, 1, 0, 1, 0, 1}, 2);
  EXPECT_EQ(r.out, (std::vector<double>{0, 0, 7}));
  EXPECT_EQ(r.lse, (std::vector<double>{-inf, -inf, 2}));
  p.kLen = {0};
  r = attendOn(p, q, k, v, {0, 1, 0, 1, 0, 1}, 2);
  EXPECT_EQ(r.out, (std::vector<double>{0, 0, 0}));
}

/// Two batch entries, grouped heads, Dv != D, query blocks.
Problem mixed(bool causal) {
  Problem p;
  p.batch = 2;
  p.heads = 6;
  p.kvHeads = 2;
  p.queryLength = 11;
  p.keyLength = 19;
  p.headDim = 5;
  p.valueDim = 3;
  p.scale = 0.7;
  p.params.blockSize = 4;
  p.params.topk = 8;
  p.params.queryBlock = 2;
  p.params.causal = causal;
  p.kLen = {19, 14};
  p.qStart = {{8, 4}};
  return p;
}

TEST(Attend, AllBlocksIsDenseAttention) {
  for (bool causal : {true, false}) {
    Problem p = mixed(causal);
    std::vector<double> q = randomValues(2 * 6 * 11 * 5, 1),
                        k = randomValues(2 * 2 * 19 * 5, 2),
                        v = randomValues(2 * 2 * 19 * 3, 3);
    Indices indices = selectOn(p, q, k).indices;
    AttentionResult r = attendOn(p, q, k, v, indices, 8);
    for (int64_t row = 0; row < 2 * 6 * 11; ++row) {
      int64_t b = row / 66, kv = b * 2 + row / 11 % 6 / 3, i = row % 11;
      int64_t end = causal
                        ? std::min<int64_t>(p.kLen[b], (*p.qStart)[b] + i + 1)
                        : p.kLen[b];
      double sum = 0, out[3] = {0, 0, 0};
      for (int64_t t = 0; t < end; ++t) {
        double logit = 0;
        for (int64_t d = 0; d < 5; ++d)
          logit += 0.7 * q[row * 5 + d] * k[(kv * 19 + t) * 5 + d];
        sum += std::exp(logit);
        for (int64_t d = 0; d < 3; ++d)
          out[d] += std::exp(logit) * v[(kv * 19 + t) * 3 + d];
      }
      EXPECT_NEAR(r.lse[row], std::log(sum), 1e-12);
      for (int64_t d = 0; d < 3; ++d)
        EXPECT_NEAR(r.out[row * 3 + d], out[d] / sum, 1e-12);
    }
  }
}

TEST(Attend, ThreadsDoNotChangeResults) {
  Problem p = mixed(true);
  std::vector<double> q = randomValues(2 * 6 * 11 * 5, 1),
                      k = randomValues(2 * 2 * 19 * 5, 2),
                      v = randomValues(2 * 2 * 19 * 3, 3);
  Selection one = selectOn(p, q, k);
  AttentionResult first = attendOn(p, q, k, v, one.indices, 8);
  for (int threads : {0, 1, 7}) {
    p.threads = threads;
    Selection other = selectOn(p, q, k);
    EXPECT_EQ(one.indices, other.indices);
    EXPECT_EQ(one.scores, other.scores);
    EXPECT_EQ(first.out, attendOn(p, q, k, v, one.indices, 8).out);
  }
}

//===----------------------------------------------------------------------===//
// checkAttention
//===----------------------------------------------------------------------===//

TEST(CheckAttention, ToleranceFollowsTheVisibleValues) {
  Problem p = zeros(12);
  p.qStart = {{5}};
  std::vector<double> q = {1}, k(12, 0.0);
  // Only -3 is the largest that the row sees: 100 is in the future, and 50 in
  // a block that is not selected.
  std::vector<double> v = {50, 0, 0, 0, 1, -3, 100, 0, 0, 0, 0, 0};
  Indices indices = {1, -1, -1, -1};
  AttentionResult r = attendOn(p, q, k, v, indices, 4);
  auto run = [&](double error, double lseError) {
    double out = r.out[0] + error, lse = r.lse[0] + lseError;
    return checkAttention(p, v.data(), indices.data(), 4, r.out.data(),
                          r.lse.data(), &out, &lse, /*eps=*/0x1p-8);
  };
  double allowed = 2 * 0x1p-8 * 3 + 1e-5;
  AttentionReport report = run(0.99 * allowed, 0.9e-4);
  EXPECT_EQ(report.elements, 2);
  EXPECT_EQ(report.wrong, 0) << report.firstError;
  EXPECT_NEAR(report.maxError, 0.99 * allowed, 1e-12);
  EXPECT_NEAR(report.maxAllowed, allowed, 1e-12);
  EXPECT_NEAR(report.maxLseError, 0.9e-4, 1e-12);
  EXPECT_EQ(run(1.01 * allowed, 0).wrong, 1);
  EXPECT_EQ(run(0, 1.1e-4).wrong, 1);
  report = run(1, 1);
  EXPECT_EQ(report.wrong, 2);
  EXPECT_EQ(report.firstError.substr(0, 48),
            "batch 0, head 0, query 0: out column 0 is 0, exp");
  double out = r.out[0];
  EXPECT_EQ(checkAttention(p, v.data(), indices.data(), 4, r.out.data(),
                           nullptr, &out, nullptr, 0)
                .elements,
            1);
}

TEST(CheckAttention, ReportsTheWorstPlace) {
  Problem p = mixed(true);
  std::vector<double> v = randomValues(2 * 2 * 19 * 3, 3);
  std::vector<double> q = randomValues(2 * 6 * 11 * 5, 1),
                      k = randomValues(2 * 2 * 19 * 5, 2);
  Indices indices = selectOn(p, q, k).indices;
  AttentionResult r = attendOn(p, q, k, v, indices, 8);
  std::vector<double> out = r.out, lse = r.lse;
  // The last column of the last row of the last batch entry is compared too.
  out.back() += 7;
  out[0] += 1;
  lse[66 + 3 * 11 + 4] -= 2;
  AttentionReport report =
      checkAttention(p, v.data(), indices.data(), 8, r.out.data(), r.lse.data(),
                     out.data(), lse.data(), 0x1p-8);
  EXPECT_EQ(report.elements, 2 * 6 * 11 * 4);
  EXPECT_EQ(report.wrong, 3);
  EXPECT_NEAR(report.maxError, 7, 1e-12);
  EXPECT_EQ(std::vector<int64_t>(report.worst, report.worst + 4),
            (std::vector<int64_t>{1, 5, 10, 2}));
  EXPECT_NEAR(report.maxLseError, 2, 1e-12);
  EXPECT_EQ(std::vector<int64_t>(report.worstLse, report.worstLse + 3),
            (std::vector<int64_t>{1, 3, 4}));
}

TEST(CheckAttention, NaNAndInfinities) {
  Problem p = zeros(4);
  p.valueDim = 2;
  std::vector<double> v = {1, inf, 1, 1, 1, 1, 1, 1};
  Indices indices = {0};
  auto wrong = [&](std::vector<double> expected, std::vector<double> actual) {
    AttentionReport report =
        checkAttention(p, v.data(), indices.data(), 1, expected.data(), nullptr,
                       actual.data(), nullptr, 0x1p-8);
    EXPECT_EQ(std::isinf(report.maxError), report.wrong > 0);
    return report.wrong;
  };
  EXPECT_EQ(wrong({1, nan}, {1, nan}), 0);
  EXPECT_EQ(wrong({1, inf}, {1, inf}), 0);
  EXPECT_EQ(wrong({1, nan}, {1, 0}), 1);
  EXPECT_EQ(wrong({1, 0}, {1, nan}), 1);
  EXPECT_EQ(wrong({1, inf}, {1, -inf}), 1);
  EXPECT_EQ(wrong({1, inf}, {1, 1e30}), 1);
  EXPECT_EQ(wrong({1, 0}, {inf, 0}), 1);
  // The infinity in column 1 does not excuse column 0.
  double expected[] = {1, inf}, actual[] = {2, inf};
  EXPECT_EQ(checkAttention(p, v.data(), indices.data(), 1, expected, nullptr,
                           actual, nullptr, 0x1p-8)
                .wrong,
            1);
}

} // namespace
