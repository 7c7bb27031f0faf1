//===- Verify.cpp - Checks of an implementation's results -----------------===//

#include "pisa/Oracle/Oracle.h"

#include "Detail.h"

#include <cassert>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <mutex>

namespace pisa::oracle {

using namespace detail;

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Selections: the tie rule
//===----------------------------------------------------------------------===//

namespace {

/// What is known of a set that rounding may have changed: it holds at least
/// `certain` and at most `possible`, both ascending.
struct Bounds {
  std::vector<int64_t> certain, possible;
};

struct Candidate {
  int64_t index;
  double score;
  bool certain;
};

/// Follows one row through the levels and keeps bounds on the kept set.
class TieReplay {
public:
  TieReplay(const Problem &problem, const Row &row, const RowTree &tree,
            const Scorer &scorer, double relTol)
      : problem(problem), row(row), tree(tree), scorer(scorer),
        // Every score is a sum over the group's heads and the block's queries.
        tolerance(relTol * double(problem.groupSize()) *
                  double(problem.params.queryBlock)) {}

  Bounds run() const;

private:
  bool surelyBeats(const Candidate &a, const Candidate &b) const;
  Bounds cut(const Bounds &candidates, const std::vector<int64_t> &forced,
             int64_t limit, const std::function<double(int64_t)> &score) const;

  const Problem &problem;
  const Row &row;
  const RowTree &tree;
  const Scorer &scorer;
  double tolerance;
};

} // namespace

bool TieReplay::surelyBeats(const Candidate &a, const Candidate &b) const {
  // Infinities and NaN are not a matter of rounding.
  if (tolerance == 0 || !std::isfinite(a.score) || !std::isfinite(b.score))
    return ranksBefore(a.score, a.index, b.score, b.index);
  double size = std::max({1.0, std::abs(a.score), std::abs(b.score)});
  return a.score - b.score > tolerance * size;
}

Bounds TieReplay::cut(const Bounds &candidates,
                      const std::vector<int64_t> &forced, int64_t limit,
                      const std::function<double(int64_t)> &score) const {
  if (int64_t(candidates.possible.size()) <= limit)
    return candidates;
  auto contains = [](const std::vector<int64_t> &set, int64_t x) {
    return std::binary_search(set.begin(), set.end(), x);
  };
  std::vector<Candidate> free;
  for (int64_t c : candidates.possible)
    if (!contains(forced, c))
      free.push_back({c, score(c), contains(candidates.certain, c)});

  int64_t places = limit - int64_t(forced.size());
  Bounds kept = {forced, forced};
  for (const Candidate &x : free) {
    // Rivals that are there and better in any case, and those that may be.
    int64_t sureRivals = 0, possibleRivals = 0;
    for (const Candidate &y : free) {
      if (x.index == y.index)
        continue;
      sureRivals += y.certain && surelyBeats(y, x);
      possibleRivals += !surelyBeats(x, y);
    }
    if (sureRivals < places)
      kept.possible.push_back(x.index);
    if (x.certain && possibleRivals < places)
      kept.certain.push_back(x.index);
  }
  std::sort(kept.certain.begin(), kept.certain.end());
  std::sort(kept.possible.begin(), kept.possible.end());
  return kept;
}

Bounds TieReplay::run() const {
  const Params &p = problem.params;
  auto exact = [&](int64_t leaf) { return scorer.exact(leaf); };
  auto pre = [&](int64_t leaf) { return scorer.pre(leaf); };
  auto descend = [&](Bounds &kept, int64_t level) {
    kept = {tree.children(kept.certain, level),
            tree.children(kept.possible, level)};
  };

  Bounds kept = {{0}, {0}}; // The root.
  for (int64_t level = tree.numLevels() - 1; level >= 2; --level) {
    descend(kept, level);
    kept = cut(kept, tree.forced(level), problem.beamWidth(),
               [&](int64_t node) { return scorer.node(level, node); });
  }
  if (tree.numLevels() > 1)
    descend(kept, 1);
  // With at most K leaves both cuts keep all, because R is at least K.
  if (p.rerank.value_or(0) > 0)
    kept = cut(kept, row.forcedLeaves, *p.rerank, pre);
  if (p.rerank == 0)
    return cut(kept, row.forcedLeaves, p.topk, pre);
  return cut(kept, row.forcedLeaves, p.topk, exact);
}

/// What is wrong with one row's list, or an empty string.
static std::string checkRow(const Problem &problem, const Row &row,
                            const Bounds &bounds, const int32_t *indices) {
  int64_t topk = problem.params.topk;
  int64_t count = std::min(topk, row.visibleLeaves);
  auto block = [](int64_t index) { return "block " + std::to_string(index); };
  for (int64_t e = 0; e < topk; ++e) {
    std::string entry = "entry " + std::to_string(e) + " is " +
                        std::to_string(indices[e]) + ", expected ";
    if (e >= count && indices[e] != -1)
      return entry + "-1 after " + std::to_string(count) + " blocks";
    if (e < count && (indices[e] < 0 || indices[e] >= row.visibleLeaves))
      return entry + "a block in [0, " + std::to_string(row.visibleLeaves) +
             ")";
    if (e > 0 && e < count && indices[e] <= indices[e - 1])
      return entry + "more than " + std::to_string(indices[e - 1]);
  }

  std::vector<int64_t> selected(indices, indices + count), extra;
  auto differ = [&](const std::vector<int64_t> &a,
                    const std::vector<int64_t> &b) {
    extra.clear();
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(extra));
    return !extra.empty();
  };
  if (differ(row.forcedLeaves, selected))
    return "the forced " + block(extra[0]) + " is missing";
  if (differ(bounds.certain, selected))
    return block(extra[0]) + " is missing, and not by rounding";
  if (differ(selected, bounds.possible))
    return block(extra[0]) + " is selected, and not by rounding";
  return "";
}

SelectionReport checkSelection(const Problem &problem, const double *q,
                               const double *k, const double *pyramid,
                               const double *atoms, const int32_t *outlier,
                               const int32_t *indices, double relTol) {
  assert(!validate(problem) && "invalid problem");
  const Params &p = problem.params;
  PyramidLayout layout(problem.keyLength, p.blockSize, p.fanout);
  SelectionReport report;
  report.rows = problem.batch * problem.kvHeads * problem.numQueryBlocks();
  std::mutex mutex;
  int64_t firstRow = report.rows;

  parallelFor(report.rows, problem.threads, [&](int64_t r) {
    Row row(problem, r);
    Bounds bounds;
    if (row.visibleLeaves > 0) {
      RowTree tree(problem, row);
      Scorer scorer(problem, layout, row, tree, q, k, pyramid, atoms, outlier);
      bounds = TieReplay(problem, row, tree, scorer, relTol).run();
    }
    std::string error = checkRow(problem, row, bounds, indices + r * p.topk);

    std::lock_guard<std::mutex> lock(mutex);
    report.tieRows += bounds.certain != bounds.possible;
    report.wrongRows += !error.empty();
    if (!error.empty() && r < firstRow) {
      firstRow = r;
      report.firstError = "batch " + std::to_string(row.b) + ", kv head " +
                          std::to_string(row.kvHead) + ", query block " +
                          std::to_string(r % problem.numQueryBlocks()) + ": " +
                          error;
    }
  });
  return report;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.9g", value);
  return buffer;
}

/// The error of a value; infinite where only one is NaN, or infinities differ.
static double errorOf(double expected, double actual) {
  if (std::isnan(expected) && std::isnan(actual))
    return 0;
  if (expected == actual)
    return 0;
  double error = std::abs(expected - actual);
  return std::isnan(error) ? infinity : error;
}

namespace {

/// The comparison of one row, and where its largest errors are.
struct RowErrors {
  int64_t wrong = 0, worstColumn = 0;
  double maxError = 0, allowed = 0, lseError = 0;
  std::string firstError;

  void add(const std::string &what, double expected, double actual,
           double error, double tolerance) {
    // A finite result has to be finite whatever the values make the tolerance.
    bool isWrong = error > tolerance || std::isinf(error);
    if (isWrong && firstError.empty())
      firstError = what + " is " + text(actual) + ", expected " +
                   text(expected) + " within " + text(tolerance);
    wrong += isWrong;
  }
};

} // namespace

AttentionReport checkAttention(const Problem &problem, const double *v,
                               const int32_t *indices, int64_t listWidth,
                               const double *expectedOut,
                               const double *expectedLse, const double *out,
                               const double *lse, double eps) {
  assert(!validate(problem) && "invalid problem");
  AttentionReport report;
  int64_t rows = problem.batch * problem.heads * problem.queryLength;
  int64_t columns = problem.valueDim;
  report.elements = rows * (columns + (lse ? 1 : 0));
  std::mutex mutex;
  int64_t firstRow = rows, worstRow = rows, worstLseRow = rows;

  parallelFor(rows, problem.threads, [&](int64_t r) {
    int64_t i = r % problem.queryLength;
    int64_t head = r / problem.queryLength % problem.heads;
    int64_t b = r / problem.queryLength / problem.heads;
    int64_t kvHead = head / problem.groupSize();
    double maxValue = 0;
    for (int64_t t : visibleKeys(problem, b, kvHead, i, indices, listWidth)) {
      int64_t key = (b * problem.kvHeads + kvHead) * problem.keyLength + t;
      for (int64_t d = 0; d < columns; ++d)
        // An infinity or NaN must not excuse the columns that it is not in.
        if (double value = std::abs(v[key * columns + d]); std::isfinite(value))
          maxValue = std::max(maxValue, value);
    }

    RowErrors row;
    row.allowed = 2 * eps * maxValue + 1e-5;
    for (int64_t d = 0; d < columns; ++d) {
      int64_t at = r * columns + d;
      double error = errorOf(expectedOut[at], out[at]);
      row.add("out column " + std::to_string(d), expectedOut[at], out[at],
              error, row.allowed);
      if (error > row.maxError) {
        row.maxError = error;
        row.worstColumn = d;
      }
    }
    if (lse) {
      row.lseError = errorOf(expectedLse[r], lse[r]);
      row.add("lse", expectedLse[r], lse[r], row.lseError,
              1e-4 * std::max(1.0, std::abs(expectedLse[r])));
    }

    std::lock_guard<std::mutex> lock(mutex);
    report.wrong += row.wrong;
    if (row.wrong > 0 && r < firstRow) {
      firstRow = r;
      report.firstError = "batch " + std::to_string(b) + ", head " +
                          std::to_string(head) + ", query " +
                          std::to_string(i) + ": " + row.firstError;
    }
    // The lowest row among equals: reports do not depend on the threads.
    auto isWorst = [&](double error, double max, int64_t maxRow) {
      return error > max || (error == max && r < maxRow);
    };
    if (isWorst(row.maxError, report.maxError, worstRow)) {
      worstRow = r;
      report.maxError = row.maxError;
      report.maxAllowed = row.allowed;
      int64_t worst[] = {b, head, i, row.worstColumn};
      std::copy(std::begin(worst), std::end(worst), report.worst);
    }
    if (isWorst(row.lseError, report.maxLseError, worstLseRow)) {
      worstLseRow = r;
      report.maxLseError = row.lseError;
      int64_t worst[] = {b, head, i};
      std::copy(std::begin(worst), std::end(worst), report.worstLse);
    }
  });
  return report;
}

} // namespace pisa::oracle
