//===- Oracle.h - Float64 reference of Pyramid Top-K Sparse Attention -----===//
//
// The reference that every target is tested against: float64, plain loops, one
// thread per group of rows. It shares no code with the compiler, so that a bug
// cannot hide by being in both. Semantics: docs/Spec.md; the section that each
// function implements is cited beside it.
//
// All arrays are contiguous, row major:
//   q [B, Hq, Tq, D]   k [B, Hkv, Tk, D]   v [B, Hkv, Tk, Dv]
//   pyramid [B, Hkv, nodes, D]   atoms [B, Hkv, leaves, A, D]
//   outlier [B, Hkv, leaves]     indices [B, Hkv, NQ, K]
//   out [B, Hq, Tq, Dv]          lse [B, Hq, Tq] (natural logarithm)
// with leaves = ceil(Tk / C) and NQ = ceil(Tq / Q). Tk is the capacity of the
// keys; kLen[b] is how many of them exist, and nothing past it is ever read.
//
//===----------------------------------------------------------------------===//

#ifndef PISA_ORACLE_ORACLE_H
#define PISA_ORACLE_ORACLE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pisa::oracle {

/// The parameters of the method; docs/Spec.md "Names" has the same table.
struct Params {
  int64_t blockSize = 64;        ///< C, keys in a leaf.
  int64_t fanout = 2;            ///< g, children of a node.
  int64_t topk = 16;             ///< K, leaves a query attends to.
  std::optional<int64_t> beam;   ///< W, nodes kept per upper level; absent: K.
  std::optional<int64_t> rerank; ///< R, leaves scored exactly; absent: all.
  int64_t leafAtoms = 4;         ///< A, sub-blocks of a leaf; divides C.
  int64_t queryBlock = 1;        ///< Q, queries that share one selection.
  int64_t sinkBlocks = 1;        ///< Forced leaves at the start.
  int64_t localBlocks = 2;       ///< Forced leaves up to the current one.
  bool causal = true;
};

/// One call: sizes, parameters, and where each sequence's queries stand.
struct Problem {
  int64_t batch = 0;       ///< B
  int64_t heads = 0;       ///< Hq
  int64_t kvHeads = 0;     ///< Hkv; query head h reads kv head h / (Hq / Hkv).
  int64_t queryLength = 0; ///< Tq
  int64_t keyLength = 0;   ///< Tk, the capacity.
  int64_t headDim = 0;     ///< D of q and k.
  int64_t valueDim = 0;    ///< Dv
  Params params;
  double scale = 1.0;        ///< Multiplies q . k.
  std::vector<int32_t> kLen; ///< [B], each in [0, Tk].
  /// [B], the absolute position of query 0. Absent: kLen - Tq in causal
  /// attention; no position at all otherwise, so that nothing is forced and
  /// query blocks count from query 0.
  std::optional<std::vector<int32_t>> qStart;
  int threads = 0; ///< 0: as many as the hardware has.

  /// G, the query heads that share one kv head.
  int64_t groupSize() const { return heads / kvHeads; }
  /// W with its default.
  int64_t beamWidth() const { return params.beam.value_or(params.topk); }
  /// NQ = ceil(Tq / Q).
  int64_t numQueryBlocks() const;
  /// ceil(Tk / C), of the capacity.
  int64_t numLeaves() const;
};

/// The error rows of docs/Spec.md "Edge cases": a message of the form
/// "expected <what> to be <...>, but got <value>", or nothing for a valid
/// problem. Every other function requires a valid one.
std::optional<std::string> validate(const Problem &problem);

/// Where the summaries of a pyramid live: packed level by level, level 1 (the
/// leaves) first. Depends on the capacity alone, never on kLen, so that a cache
/// that grows does not move its nodes. docs/Spec.md section 1.
struct PyramidLayout {
  std::vector<int64_t> levelNodes;  ///< [l - 1]: nodes of level l.
  std::vector<int64_t> levelOffset; ///< [l - 1]: first node of level l.
  int64_t numNodes = 0;

  PyramidLayout(int64_t capacity, int64_t blockSize, int64_t fanout);
  int64_t numLevels() const { return int64_t(levelNodes.size()); }
};

/// docs/Spec.md section 1: the unrounded mean of the keys below every node,
/// [B, Hkv, nodes, D]. Incomplete tail nodes are written with the keys that
/// exist, in causal attention too; nodes without a key are 0.
std::vector<double> buildPyramid(const Problem &problem, const double *k);

/// docs/Spec.md section 1, "Atoms": atom a of a leaf is the mean of its
/// sub-block a without the outlier key, 0 where no key remains; the outlier is
/// the absolute index of the key farthest from the leaf's mean (the lowest
/// index among equals), -1 for a leaf without keys. Requires A to divide C.
void buildAtoms(const Problem &problem, const double *k,
                std::vector<double> &atomsOut,
                std::vector<int32_t> &outlierOut);

struct Selection {
  std::vector<int32_t> indices; ///< [B, Hkv, NQ, K], ascending, -1 at the end.
  std::vector<int32_t> count;   ///< [B, Hkv, NQ], entries that are not -1.
  /// [B, Hkv, NQ, K], the score of each selected leaf: exact(leaf), or
  /// pre(leaf) when R = 0, over all keys of the leaf below kLen, computed for
  /// forced leaves too. -inf where the index is -1.
  std::vector<double> scores;
  /// [B, Hkv, NQ], the smallest gap between the last kept and the first dropped
  /// candidate over all levels; +inf where nothing was dropped.
  std::vector<double> margin;
};

/// docs/Spec.md section 2, exactly. `pyramid`, `atoms` and `outlier` are the
/// STORED summaries, that is those of the implementation under test, widened:
/// two implementations are compared on the same summaries. atoms and outlier
/// may be null when params.rerank is absent.
Selection select(const Problem &problem, const double *q, const double *k,
                 const double *pyramid, const double *atoms,
                 const int32_t *outlier);

struct SelectionReport {
  int64_t rows = 0;      ///< B * Hkv * NQ
  int64_t tieRows = 0;   ///< Rows where rounding may decide about some node.
  int64_t wrongRows = 0; ///< Rows that no order within the tolerance explains.
  std::string firstError;
};

/// The tie rule of docs/Spec.md "Properties": accepts every selection that can
/// follow from scores within tol = relTol * G * Q * max(1, |score|) of the
/// exact ones. Level by level it bounds the kept set from below and above, so
/// in a row without a tie the list must be the exact one, and in a row with
/// ties it must lie between the bounds. Always checked: forced blocks present,
/// ascending, min(K, visible) of them, -1 after. relTol = 0 asks for the exact
/// selection.
SelectionReport checkSelection(const Problem &problem, const double *q,
                               const double *k, const double *pyramid,
                               const double *atoms, const int32_t *outlier,
                               const int32_t *indices, double relTol = 1e-5);

/// docs/Spec.md section 3. `indices` is [B, Hkv, NQ, listWidth] and any list is
/// accepted: entries that are -1, out of range or in the future contribute
/// nothing, duplicates count once. A row without a key, or with -inf logits
/// only, gives output 0 and lse -inf. `lse` may be null.
void attend(const Problem &problem, const double *q, const double *k,
            const double *v, const int32_t *indices, int64_t listWidth,
            double *out, double *lse);

struct AttentionReport {
  int64_t elements = 0;  ///< Compared values, lse included.
  int64_t wrong = 0;     ///< Those outside the tolerance.
  double maxError = 0;   ///< Largest error of out; inf for a misplaced NaN.
  double maxAllowed = 0; ///< The tolerance at that element.
  int64_t worst[4] = {0, 0, 0, 0}; ///< Its batch, query head, query, column.
  double maxLseError = 0;          ///< Likewise of lse,
  int64_t worstLse[3] = {0, 0, 0}; ///< at this batch, query head, query.
  std::string firstError;
};

/// docs/Spec.md "Attention tolerance": |error| <= 2 * eps * max|v over the
/// selected keys that the row sees| + 1e-5 for out, and 1e-4 * max(1, |lse|)
/// for lse. NaN must meet NaN and an infinity the same infinity. `lse` may be
/// null, and `expectedLse` then too.
AttentionReport checkAttention(const Problem &problem, const double *v,
                               const int32_t *indices, int64_t listWidth,
                               const double *expectedOut,
                               const double *expectedLse, const double *out,
                               const double *lse, double eps);

} // namespace pisa::oracle

#endif // PISA_ORACLE_ORACLE_H
