//===- Selection.cpp - Routing: docs/Spec.md section 2 --------------------===//

#include "pisa/Oracle/Oracle.h"

#include "Detail.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace pisa::oracle {

using namespace detail;

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// What a row sees
//===----------------------------------------------------------------------===//

Row::Row(const Problem &problem, int64_t row) {
  const Params &p = problem.params;
  int64_t queryBlocks = problem.numQueryBlocks();
  b = row / queryBlocks / problem.kvHeads;
  kvHead = row / queryBlocks % problem.kvHeads;
  firstQuery = row % queryBlocks * p.queryBlock;
  lastQuery = std::min(firstQuery + p.queryBlock, problem.queryLength) - 1;
  keyLen = problem.kLen[b];
  leaves = ceilDiv(keyLen, p.blockSize);
  visibleLeaves = leaves;
  if (!hasPosition(problem))
    return;

  int64_t firstCurrent =
      floorDiv(position(problem, b, firstQuery), p.blockSize);
  int64_t lastCurrent = floorDiv(position(problem, b, lastQuery), p.blockSize);
  // Candidates are those of the block's last position.
  if (p.causal)
    visibleLeaves = std::clamp<int64_t>(lastCurrent + 1, 0, leaves);
  // Each query forces the sink and the `local` leaves up to its own; a block
  // forces the union. Leaves that do not exist, or that start after the last
  // query, drop out.
  for (int64_t leaf = 0; leaf < std::min(leaves, lastCurrent + 1); ++leaf) {
    bool local = p.localBlocks > 0 && leaf > firstCurrent - p.localBlocks;
    if (leaf < p.sinkBlocks || local)
      forcedLeaves.push_back(leaf);
  }
}

RowTree::RowTree(const Problem &problem, const Row &row)
    : problem(problem), row(row) {
  for (int64_t n = row.leaves; n > 0;
       n = n == 1 ? 0 : ceilDiv(n, problem.params.fanout))
    nodes.push_back(n);
}

/// g^(level - 1), the leaves below a node.
int64_t RowTree::leafSpan(int64_t level) const {
  int64_t span = 1;
  for (int64_t l = 1; l < level; ++l)
    span *= problem.params.fanout;
  return span;
}

int64_t RowTree::visibleNodes(int64_t level) const {
  return ceilDiv(row.visibleLeaves, leafSpan(level));
}

std::vector<int64_t> RowTree::children(const std::vector<int64_t> &parents,
                                       int64_t level) const {
  int64_t fanout = problem.params.fanout, visible = visibleNodes(level);
  std::vector<int64_t> result;
  for (int64_t parent : parents)
    for (int64_t c = parent * fanout;
         c < std::min((parent + 1) * fanout, visible); ++c)
      result.push_back(c);
  return result;
}

std::vector<int64_t> RowTree::forced(int64_t level) const {
  std::vector<int64_t> result;
  for (int64_t leaf : row.forcedLeaves)
    if (int64_t node = leaf / leafSpan(level);
        result.empty() || result.back() != node)
      result.push_back(node);
  return result;
}

int64_t RowTree::count(int64_t level, int64_t node) const {
  int64_t span = problem.params.blockSize * leafSpan(level);
  return std::clamp<int64_t>(row.keyLen - node * span, 0, span);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Scorer::Scorer(const Problem &problem, const PyramidLayout &layout,
               const Row &row, const RowTree &tree, const double *q,
               const double *k, const double *pyramid, const double *atoms,
               const int32_t *outlier)
    : problem(problem), layout(layout), row(row), tree(tree) {
  int64_t dim = problem.headDim, leaves = problem.numLeaves();
  int64_t kv = row.b * problem.kvHeads + row.kvHead;
  int64_t head = row.b * problem.heads + row.kvHead * problem.groupSize();
  this->q = q + head * problem.queryLength * dim;
  this->k = k + kv * problem.keyLength * dim;
  this->pyramid = pyramid + kv * layout.numNodes * dim;
  this->atoms =
      atoms ? atoms + kv * leaves * problem.params.leafAtoms * dim : nullptr;
  this->outlier = outlier ? outlier + kv * leaves : nullptr;
}

/// Sum over heads and queries of log sum count * exp(scale * q . vector): the
/// form that all three scores share.
double Scorer::score(const std::vector<Summary> &summaries) const {
  double total = 0;
  std::vector<double> logits(summaries.size());
  for (int64_t h = 0; h < problem.groupSize(); ++h)
    for (int64_t i = row.firstQuery; i <= row.lastQuery; ++i) {
      const double *query = q + (h * problem.queryLength + i) * problem.headDim;
      for (size_t s = 0; s < summaries.size(); ++s)
        logits[s] =
            problem.scale * dot(query, summaries[s].vector, problem.headDim) +
            std::log(double(summaries[s].count));
      total += logSumExp(logits);
    }
  return total;
}

double Scorer::node(int64_t level, int64_t index) const {
  assert(level >= 2 && "leaves have no children");
  int64_t fanout = problem.params.fanout;
  std::vector<Summary> summaries;
  for (int64_t c = index * fanout;
       c < std::min((index + 1) * fanout, tree.numNodes(level - 1)); ++c)
    summaries.push_back(
        {pyramid + (layout.levelOffset[level - 2] + c) * problem.headDim,
         tree.count(level - 1, c)});
  return score(summaries);
}

double Scorer::exact(int64_t leaf) const {
  std::vector<Summary> summaries;
  int64_t begin = leaf * problem.params.blockSize;
  for (int64_t t = begin; t < begin + tree.count(1, leaf); ++t)
    summaries.push_back({k + t * problem.headDim, 1});
  return score(summaries);
}

double Scorer::pre(int64_t leaf) const {
  assert(atoms && outlier && "the pre-score reads the atoms");
  int64_t numAtoms = problem.params.leafAtoms;
  // How many keys an atom stands for follows from the length and the outlier;
  // an outlier that is not in the leaf is no outlier.
  int64_t subBlock = problem.params.blockSize / numAtoms;
  int64_t begin = leaf * problem.params.blockSize;
  int64_t end = begin + tree.count(1, leaf), out = outlier[leaf];
  std::vector<Summary> summaries;
  for (int64_t a = 0; a < numAtoms; ++a) {
    int64_t from = std::min(begin + a * subBlock, end);
    int64_t to = std::min(from + subBlock, end);
    int64_t count = to - from - (out >= from && out < to);
    if (count > 0)
      summaries.push_back(
          {atoms + (leaf * numAtoms + a) * problem.headDim, count});
  }
  if (out >= begin && out < end)
    summaries.push_back({k + out * problem.headDim, 1});
  return score(summaries);
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// Subtracts scores of one order: equal ones (infinities and NaN too) have no
/// gap, and a number is infinitely better than a NaN.
static double gap(double kept, double dropped) {
  if (kept == dropped || std::isnan(kept))
    return 0;
  return std::isnan(dropped) ? infinity : kept - dropped;
}

/// All candidates if there are at most `limit`; else the forced ones and the
/// best of the others. Lowers `margin` to the gap at the cut.
static std::vector<int64_t> cut(const std::vector<int64_t> &candidates,
                                const std::vector<int64_t> &forced,
                                int64_t limit,
                                const std::function<double(int64_t)> &score,
                                double &margin) {
  if (int64_t(candidates.size()) <= limit)
    return candidates;
  std::vector<std::pair<double, int64_t>> free;
  for (int64_t c : candidates)
    if (!std::binary_search(forced.begin(), forced.end(), c))
      free.push_back({score(c), c});
  std::sort(free.begin(), free.end(), [](const auto &a, const auto &b) {
    return ranksBefore(a.first, a.second, b.first, b.second);
  });
  size_t places = limit - forced.size();
  if (places > 0)
    margin = std::min(margin, gap(free[places - 1].first, free[places].first));

  std::vector<int64_t> kept = forced;
  for (size_t i = 0; i < places; ++i)
    kept.push_back(free[i].second);
  std::sort(kept.begin(), kept.end());
  return kept;
}

Selection select(const Problem &problem, const double *q, const double *k,
                 const double *pyramid, const double *atoms,
                 const int32_t *outlier) {
  assert(!validate(problem) && "invalid problem");
  const Params &p = problem.params;
  PyramidLayout layout(problem.keyLength, p.blockSize, p.fanout);
  int64_t rows = problem.batch * problem.kvHeads * problem.numQueryBlocks();
  Selection result;
  result.indices.assign(rows * p.topk, -1);
  result.count.assign(rows, 0);
  result.scores.assign(rows * p.topk, -infinity);
  result.margin.assign(rows, infinity);

  parallelFor(rows, problem.threads, [&](int64_t r) {
    Row row(problem, r);
    if (row.visibleLeaves == 0)
      return;
    RowTree tree(problem, row);
    Scorer scorer(problem, layout, row, tree, q, k, pyramid, atoms, outlier);
    auto exact = [&](int64_t leaf) { return scorer.exact(leaf); };
    auto pre = [&](int64_t leaf) { return scorer.pre(leaf); };
    double &margin = result.margin[r];

    std::vector<int64_t> kept = {0}; // The root.
    for (int64_t level = tree.numLevels() - 1; level >= 2; --level)
      kept = cut(
          tree.children(kept, level), tree.forced(level), problem.beamWidth(),
          [&](int64_t node) { return scorer.node(level, node); }, margin);

    // The root of a tree of one level is itself the leaf.
    if (tree.numLevels() > 1)
      kept = tree.children(kept, 1);
    if (int64_t(kept.size()) > p.topk) {
      if (p.rerank.value_or(0) > 0)
        kept = cut(kept, row.forcedLeaves, *p.rerank, pre, margin);
      if (p.rerank == 0)
        kept = cut(kept, row.forcedLeaves, p.topk, pre, margin);
      else
        kept = cut(kept, row.forcedLeaves, p.topk, exact, margin);
    }

    result.count[r] = int32_t(kept.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      result.indices[r * p.topk + i] = int32_t(kept[i]);
      result.scores[r * p.topk + i] =
          p.rerank == 0 ? pre(kept[i]) : exact(kept[i]);
    }
  });
  return result;
}

} // namespace pisa::oracle
