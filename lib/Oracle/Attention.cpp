//===- Attention.cpp - Attention over given leaves: docs/Spec.md section 3 ===//

#include "pisa/Oracle/Oracle.h"

#include "Detail.h"

#include <cassert>
#include <algorithm>
#include <cmath>
#include <limits>

namespace pisa::oracle {

using namespace detail;

std::vector<int64_t> detail::visibleKeys(const Problem &problem, int64_t b,
                                         int64_t kvHead, int64_t i,
                                         const int32_t *indices,
                                         int64_t listWidth) {
  const Params &p = problem.params;
  // Keys from here on do not exist, or are in the query's future.
  int64_t keyEnd = problem.kLen[b];
  if (p.causal)
    keyEnd = std::clamp<int64_t>(position(problem, b, i) + 1, 0, keyEnd);
  int64_t row = (b * problem.kvHeads + kvHead) * problem.numQueryBlocks() +
                i / p.queryBlock;
  // An invalid entry drops out here, wherever it stands, and is never used to
  // address memory.
  std::vector<int64_t> leaves;
  for (int64_t e = 0; e < listWidth; ++e)
    if (int64_t leaf = indices[row * listWidth + e];
        leaf >= 0 && leaf < ceilDiv(keyEnd, p.blockSize))
      leaves.push_back(leaf);
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());

  std::vector<int64_t> keys;
  for (int64_t leaf : leaves)
    for (int64_t t = leaf * p.blockSize;
         t < std::min((leaf + 1) * p.blockSize, keyEnd); ++t)
      keys.push_back(t);
  return keys;
}

void attend(const Problem &problem, const double *q, const double *k,
            const double *v, const int32_t *indices, int64_t listWidth,
            double *out, double *lse) {
  assert(!validate(problem) && "invalid problem");
  int64_t rows = problem.batch * problem.heads * problem.queryLength;
  parallelFor(rows, problem.threads, [&](int64_t r) {
    int64_t i = r % problem.queryLength;
    int64_t head = r / problem.queryLength % problem.heads;
    int64_t b = r / problem.queryLength / problem.heads;
    int64_t kvHead = head / problem.groupSize();
    int64_t kv = b * problem.kvHeads + kvHead;
    std::vector<int64_t> keys =
        visibleKeys(problem, b, kvHead, i, indices, listWidth);

    // Only the visible keys are touched: NaN elsewhere cannot get in.
    std::vector<double> logits;
    for (int64_t t : keys)
      logits.push_back(problem.scale *
                       dot(q + r * problem.headDim,
                           k + (kv * problem.keyLength + t) * problem.headDim,
                           problem.headDim));
    double logSum = logSumExp(logits);
    if (lse)
      lse[r] = logSum;
    double *result = out + r * problem.valueDim;
    std::fill(result, result + problem.valueDim, 0.0);
    // No key, or probability zero everywhere: nothing to attend to.
    if (logSum == -std::numeric_limits<double>::infinity())
      return;
    // A +inf logit gives inf - inf = NaN here, as in dense softmax.
    // Normalised by the sum itself: in max + log(sum) huge logits swallow it.
    double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double logit : logits)
      sum += std::exp(logit - max);
    for (size_t j = 0; j < keys.size(); ++j) {
      double probability = std::exp(logits[j] - max) / sum;
      const double *value =
          v + (kv * problem.keyLength + keys[j]) * problem.valueDim;
      for (int64_t d = 0; d < problem.valueDim; ++d)
        result[d] += probability * value[d];
    }
  });
}

} // namespace pisa::oracle
