//===- Pyramid.cpp - Summaries: docs/Spec.md section 1 --------------------===//

#include "pisa/Oracle/Oracle.h"

#include "Detail.h"

#include <cassert>

namespace pisa::oracle {

using namespace detail;

PyramidLayout::PyramidLayout(int64_t capacity, int64_t blockSize,
                             int64_t fanout) {
  for (int64_t nodes = ceilDiv(capacity, blockSize); nodes > 0;
       nodes = nodes == 1 ? 0 : ceilDiv(nodes, fanout)) {
    levelNodes.push_back(nodes);
    levelOffset.push_back(numNodes);
    numNodes += nodes;
  }
}

std::vector<double> buildPyramid(const Problem &problem, const double *k) {
  assert(!validate(problem) && "invalid problem");
  int64_t dim = problem.headDim, fanout = problem.params.fanout;
  PyramidLayout layout(problem.keyLength, problem.params.blockSize, fanout);
  std::vector<double> pyramid(
      problem.batch * problem.kvHeads * layout.numNodes * dim, 0.0);

  parallelFor(
      problem.batch * problem.kvHeads, problem.threads, [&](int64_t bh) {
        const double *keys = k + bh * problem.keyLength * dim;
        double *nodes = pyramid.data() + bh * layout.numNodes * dim;
        int64_t keyLen = problem.kLen[bh / problem.kvHeads];

        // Sums first: a mean of children's means would weight a ragged tail
        // wrong.
        std::vector<int64_t> counts(layout.numNodes, 0);
        auto add = [&](int64_t node, const double *vector, int64_t count) {
          for (int64_t d = 0; d < dim; ++d)
            nodes[node * dim + d] += vector[d];
          counts[node] += count;
        };
        for (int64_t t = 0; t < keyLen; ++t)
          add(t / problem.params.blockSize, keys + t * dim, 1);
        for (int64_t level = 2; level <= layout.numLevels(); ++level)
          for (int64_t c = 0; c < layout.levelNodes[level - 2]; ++c) {
            int64_t child = layout.levelOffset[level - 2] + c;
            add(layout.levelOffset[level - 1] + c / fanout, nodes + child * dim,
                counts[child]);
          }
        for (int64_t node = 0; node < layout.numNodes; ++node)
          for (int64_t d = 0; d < dim && counts[node] > 0; ++d)
            nodes[node * dim + d] /= double(counts[node]);
      });
  return pyramid;
}

/// The mean of keys [begin, end) other than `skipped` (-1: none is skipped);
/// returns how many there are, and leaves `mean` alone when there are none.
static int64_t meanOf(const double *keys, int64_t dim, int64_t begin,
                      int64_t end, int64_t skipped, double *mean) {
  std::vector<double> sum(dim, 0.0);
  int64_t count = 0;
  for (int64_t t = begin; t < end; ++t) {
    if (t == skipped)
      continue;
    for (int64_t d = 0; d < dim; ++d)
      sum[d] += keys[t * dim + d];
    ++count;
  }
  for (int64_t d = 0; d < dim && count > 0; ++d)
    mean[d] = sum[d] / double(count);
  return count;
}

void buildAtoms(const Problem &problem, const double *k,
                std::vector<double> &atomsOut,
                std::vector<int32_t> &outlierOut) {
  const Params &p = problem.params;
  assert(p.leafAtoms > 0 && p.blockSize % p.leafAtoms == 0 &&
         "leaf_atoms must divide block_size");
  int64_t dim = problem.headDim, leaves = problem.numLeaves();
  int64_t rows = problem.batch * problem.kvHeads;
  int64_t subBlock = p.blockSize / p.leafAtoms;
  atomsOut.assign(rows * leaves * p.leafAtoms * dim, 0.0);
  outlierOut.assign(rows * leaves, -1);

  parallelFor(rows, problem.threads, [&](int64_t bh) {
    const double *keys = k + bh * problem.keyLength * dim;
    int64_t keyLen = problem.kLen[bh / problem.kvHeads];
    for (int64_t leaf = 0; leaf * p.blockSize < keyLen; ++leaf) {
      int64_t begin = leaf * p.blockSize;
      int64_t end = std::min(begin + p.blockSize, keyLen);
      std::vector<double> mean(dim, 0.0);
      meanOf(keys, dim, begin, end, -1, mean.data());

      int64_t outlier = begin;
      double farthest = -1;
      for (int64_t t = begin; t < end; ++t) {
        double distance = 0;
        for (int64_t d = 0; d < dim; ++d) {
          double difference = keys[t * dim + d] - mean[d];
          distance += difference * difference;
        }
        if (distance > farthest) { // Not >=: the lowest index among equals.
          farthest = distance;
          outlier = t;
        }
      }
      outlierOut[bh * leaves + leaf] = int32_t(outlier);
      for (int64_t a = 0; a < p.leafAtoms; ++a)
        meanOf(keys, dim, std::min(begin + a * subBlock, end),
               std::min(begin + (a + 1) * subBlock, end), outlier,
               &atomsOut[((bh * leaves + leaf) * p.leafAtoms + a) * dim]);
    }
  });
}

} // namespace pisa::oracle
