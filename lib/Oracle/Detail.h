//===- Detail.h - What the oracle's files share ---------------------------===//

#ifndef PISA_LIB_ORACLE_DETAIL_H
#define PISA_LIB_ORACLE_DETAIL_H

#include "pisa/Oracle/Oracle.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace pisa::oracle::detail {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Division that rounds down: a position before the first key must not fall
/// into block 0.
inline int64_t floorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -ceilDiv(-a, b);
}

/// Calls fn(i) for i in [0, count) on several threads. The calls must write to
/// disjoint places.
void parallelFor(int64_t count, int threads,
                 const std::function<void(int64_t)> &fn);

double dot(const double *a, const double *b, int64_t n);

/// log sum exp: empty -> -inf; a maximum that is not finite is the result; any
/// NaN -> NaN.
double logSumExp(const std::vector<double> &x);

/// True if queries have a position: then there are forced leaves.
bool hasPosition(const Problem &problem);

/// pos(b, i) = q_start[b] + i. Meaningless without a position.
int64_t position(const Problem &problem, int64_t b, int64_t i);

/// One row of a selection: a query block of one kv head.
struct Row {
  int64_t b, kvHead;
  int64_t firstQuery, lastQuery; ///< Those that exist, both inclusive.
  int64_t keyLen;
  int64_t leaves;        ///< That exist.
  int64_t visibleLeaves; ///< Of those, the ones that start at or before pos.
  std::vector<int64_t> forcedLeaves; ///< Ascending.

  /// `row` counts in [B, Hkv, NQ].
  Row(const Problem &problem, int64_t row);
};

/// The tree over the keys that exist, as one row sees it.
class RowTree {
public:
  RowTree(const Problem &problem, const Row &row);

  int64_t numLevels() const { return int64_t(nodes.size()); }
  /// Nodes of a level that start at or before pos: a prefix, because nodes are
  /// in the order of their keys.
  int64_t visibleNodes(int64_t level) const;
  /// Children, on `level`, of nodes one level up; visible ones only.
  std::vector<int64_t> children(const std::vector<int64_t> &parents,
                                int64_t level) const;
  /// The forced leaves' ancestors on `level`, ascending.
  std::vector<int64_t> forced(int64_t level) const;
  /// Keys below a node: C * g^(level - 1), less at the end of the sequence.
  int64_t count(int64_t level, int64_t node) const;
  /// Nodes of a level that exist.
  int64_t numNodes(int64_t level) const { return nodes[level - 1]; }

private:
  int64_t leafSpan(int64_t level) const;

  const Problem &problem;
  const Row &row;
  std::vector<int64_t> nodes;
};

/// The three scores of docs/Spec.md section 2, summed over the heads of the
/// group and the queries of the block.
class Scorer {
public:
  Scorer(const Problem &problem, const PyramidLayout &layout, const Row &row,
         const RowTree &tree, const double *q, const double *k,
         const double *pyramid, const double *atoms, const int32_t *outlier);

  double node(int64_t level, int64_t index) const;
  double exact(int64_t leaf) const;
  double pre(int64_t leaf) const;

private:
  /// A vector that stands for `count` keys.
  struct Summary {
    const double *vector;
    int64_t count;
  };
  double score(const std::vector<Summary> &summaries) const;

  const Problem &problem;
  const PyramidLayout &layout;
  const Row &row;
  const RowTree &tree;
  const double *q; ///< Of the batch entry and the group's first head.
  const double *k; ///< Of the batch entry and kv head, as are the next.
  const double *pyramid;
  const double *atoms;
  const int32_t *outlier;
};

/// The order of scores: sort by (is NaN, -score, index).
inline bool ranksBefore(double scoreA, int64_t a, double scoreB, int64_t b) {
  bool nanA = scoreA != scoreA, nanB = scoreB != scoreB;
  if (nanA != nanB)
    return nanB;
  if (!nanA && scoreA != scoreB)
    return scoreA > scoreB;
  return a < b;
}

/// The keys that query i of kv head `kvHead` sees through its index list,
/// ascending and distinct: docs/Spec.md section 3.
std::vector<int64_t> visibleKeys(const Problem &problem, int64_t b,
                                 int64_t kvHead, int64_t i,
                                 const int32_t *indices, int64_t listWidth);

} // namespace pisa::oracle::detail

#endif // PISA_LIB_ORACLE_DETAIL_H
