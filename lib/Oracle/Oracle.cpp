//===- Oracle.cpp - Problems: validation, positions, threads --------------===//

#include "pisa/Oracle/Oracle.h"

#include "Detail.h"

#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>
#include <thread>

namespace pisa::oracle {

using namespace detail;

int64_t Problem::numQueryBlocks() const {
  return ceilDiv(queryLength, params.queryBlock);
}

int64_t Problem::numLeaves() const {
  return ceilDiv(keyLength, params.blockSize);
}

//===----------------------------------------------------------------------===//
// Validation
//===----------------------------------------------------------------------===//

/// The one form that all messages have.
static std::string expected(const std::string &what, const std::string &allowed,
                            int64_t value) {
  return "expected " + what + " to be " + allowed + ", but got " +
         std::to_string(value);
}

static std::string atLeast(int64_t bound) {
  return "at least " + std::to_string(bound);
}

/// The parameters, independently of lengths and positions.
static std::optional<std::string> validateParams(const Problem &problem) {
  const Params &p = problem.params;
  if (p.blockSize < 1)
    return expected("block_size", atLeast(1), p.blockSize);
  if (p.fanout < 2)
    return expected("fanout", atLeast(2), p.fanout);
  if (p.topk < 1)
    return expected("topk", atLeast(1), p.topk);
  if (p.queryBlock < 1)
    return expected("query_block", atLeast(1), p.queryBlock);
  if (p.sinkBlocks < 0)
    return expected("sink_blocks", atLeast(0), p.sinkBlocks);
  if (p.causal && p.localBlocks < 1)
    return expected("local_blocks", atLeast(1) + " in causal attention",
                    p.localBlocks);
  if (p.localBlocks < 0)
    return expected("local_blocks", atLeast(0), p.localBlocks);

  // A query block spans at most ceil((Q - 1) / C) leaves more than a query.
  int64_t forced =
      p.sinkBlocks + p.localBlocks + ceilDiv(p.queryBlock - 1, p.blockSize);
  if (hasPosition(problem) && p.topk < forced)
    return expected("topk", atLeast(forced) + ", the number of forced blocks",
                    p.topk);
  if (p.beam && *p.beam < p.topk)
    return expected("beam", atLeast(p.topk) + " (topk)", *p.beam);
  if (!p.rerank)
    return std::nullopt;
  int64_t maxRerank = p.fanout * problem.beamWidth();
  if (*p.rerank != 0 && (*p.rerank < p.topk || *p.rerank > maxRerank))
    return expected("rerank",
                    "absent, 0 or in [" + std::to_string(p.topk) + ", " +
                        std::to_string(maxRerank) + "] (topk to fanout * beam)",
                    *p.rerank);
  if (p.leafAtoms < 1 || p.blockSize % p.leafAtoms != 0)
    return expected("leaf_atoms",
                    "a divisor of block_size " + std::to_string(p.blockSize),
                    p.leafAtoms);
  return std::nullopt;
}

/// The dimensions; first of all, because the other checks divide by them.
static std::optional<std::string> validateSizes(const Problem &p) {
  struct {
    const char *name;
    int64_t value, minimum;
  } sizes[] = {
      {"batch", p.batch, 0},          {"heads", p.heads, 1},
      {"kv_heads", p.kvHeads, 1},     {"query_length", p.queryLength, 0},
      {"key_length", p.keyLength, 0}, {"head_dim", p.headDim, 1},
      {"value_dim", p.valueDim, 0}};
  for (auto &size : sizes)
    if (size.value < size.minimum)
      return expected(size.name, atLeast(size.minimum), size.value);
  if (p.heads % p.kvHeads != 0)
    return expected("heads",
                    "a multiple of kv_heads " + std::to_string(p.kvHeads),
                    p.heads);
  // Block indices and lengths are int32.
  if (p.keyLength > std::numeric_limits<int32_t>::max())
    return expected("key_length", "at most 2147483647", p.keyLength);
  return std::nullopt;
}

/// The lengths, and where the queries stand among the keys.
static std::optional<std::string> validatePositions(const Problem &p) {
  if (int64_t(p.kLen.size()) != p.batch)
    return expected("the size of k_len", std::to_string(p.batch) + " (batch)",
                    p.kLen.size());
  if (p.qStart && int64_t(p.qStart->size()) != p.batch)
    return expected("the size of q_start", std::to_string(p.batch) + " (batch)",
                    p.qStart->size());
  for (int64_t b = 0; b < p.batch; ++b)
    if (p.kLen[b] < 0 || p.kLen[b] > p.keyLength)
      return expected("k_len[" + std::to_string(b) + "]",
                      "in [0, " + std::to_string(p.keyLength) + "]", p.kLen[b]);
  // Without q_start the queries end with the keys, so some would stand before
  // the first one. Rows that do so by their own k_len just see no key.
  if (p.params.causal && !p.qStart && p.keyLength > 0 &&
      p.queryLength > p.keyLength)
    return expected("query_length",
                    "at most key_length " + std::to_string(p.keyLength) +
                        " in causal attention without q_start",
                    p.queryLength);
  if (p.params.queryBlock == 1 || !hasPosition(p))
    return std::nullopt;
  for (int64_t b = 0; b < p.batch; ++b)
    if (int64_t start = position(p, b, 0); start % p.params.queryBlock != 0)
      return expected("q_start[" + std::to_string(b) + "]",
                      "a multiple of query_block " +
                          std::to_string(p.params.queryBlock),
                      start);
  return std::nullopt;
}

std::optional<std::string> validate(const Problem &problem) {
  if (auto error = validateSizes(problem))
    return error;
  if (auto error = validateParams(problem))
    return error;
  return validatePositions(problem);
}

//===----------------------------------------------------------------------===//
// Shared helpers
//===----------------------------------------------------------------------===//

void detail::parallelFor(int64_t count, int threads,
                         const std::function<void(int64_t)> &fn) {
  int64_t workers = threads > 0 ? threads : std::thread::hardware_concurrency();
  workers = std::clamp<int64_t>(workers, 1, std::max<int64_t>(count, 1));
  // Rows differ in cost (causal: the late ones see more), hence one at a time.
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t i; (i = next++) < count;)
      fn(i);
  };
  std::vector<std::thread> pool;
  for (int64_t w = 1; w < workers; ++w)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

double detail::dot(const double *a, const double *b, int64_t n) {
  // Four sums, because one would wait for each addition before the next.
  double sum[4] = {0, 0, 0, 0};
  int64_t d = 0;
  for (; d + 4 <= n; d += 4)
    for (int64_t lane = 0; lane < 4; ++lane)
      sum[lane] += a[d + lane] * b[d + lane];
  for (; d < n; ++d)
    sum[0] += a[d] * b[d];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double detail::logSumExp(const std::vector<double> &x) {
  // Subtracting the maximum keeps logits of any size in range.
  double max = -std::numeric_limits<double>::infinity();
  for (double value : x) {
    if (std::isnan(value))
      return value;
    max = std::max(max, value);
  }
  if (!std::isfinite(max))
    return max;
  double sum = 0;
  for (double value : x)
    sum += std::exp(value - max);
  return max + std::log(sum);
}

bool detail::hasPosition(const Problem &problem) {
  return problem.params.causal || problem.qStart.has_value();
}

int64_t detail::position(const Problem &problem, int64_t b, int64_t i) {
  if (problem.qStart)
    return int64_t((*problem.qStart)[b]) + i;
  return int64_t(problem.kLen[b]) - problem.queryLength + i;
}

} // namespace pisa::oracle
