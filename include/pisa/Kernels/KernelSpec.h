//===- KernelSpec.h - Which kernel is wanted --------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_KERNELS_KERNELSPEC_H
#define PISA_KERNELS_KERNELSPEC_H

#include <cstdint>
#include <optional>
#include <string>

namespace pisa {

/// What elements of queries, keys, values and summaries may be.
enum class ElementType { F32, F16, BF16 };
const char *getName(ElementType type); ///< "f32", "f16", "bf16"

/// The fields of `#pisa.params` (docs/Spec.md "Names"), unchecked: its verifier
/// does that.
struct KernelParams {
  int64_t blockSize = 64;
  int64_t fanout = 2;
  int64_t topk = 16;
  std::optional<int64_t> beam;
  std::optional<int64_t> rerank;
  int64_t leafAtoms = 4;
  int64_t queryBlock = 1;
  int64_t sinkBlocks = 1;
  int64_t localBlocks = 2;
  bool causal = true;
  std::optional<ElementType> summaryDtype;
};

/// The functions that a module may have.
enum KernelFunctions : unsigned {
  BuildPyramidFunction = 1,
  RouteFunction = 2,
  AttentionFunction = 4,
  AllFunctions = 7,
};

/// Everything that code is compiled for: it serves any B, Tq and Tk.
struct KernelSpec {
  unsigned functions = AllFunctions;
  KernelParams params;
  ElementType dtype = ElementType::F32; ///< of q, k, v and out
  int64_t heads = 1;                    ///< Hq
  int64_t kvHeads = 1;                  ///< Hkv
  int64_t headDim = 64;                 ///< D
  int64_t valueDim = 64;                ///< Dv
  int64_t listWidth = 16;               ///< entries of a list in attention
  bool hasQStart = true;     ///< absent: the last query stands at the last key
  bool wantOpenSums = false; ///< of build_pyramid
  bool wantCount = false;    ///< of route
  bool wantScores = false;   ///< of route
  bool wantLse = false;      ///< of attention
  bool checkInputs = false;  ///< report lists with an entry twice

  bool usesAtoms() const { return params.rerank.has_value(); }
  ElementType getSummaryType() const {
    return params.summaryDtype.value_or(dtype);
  }
};

/// The text of `#pisa.params<...>`.
std::string printParams(const KernelParams &params);

/// A module with the functions @build_pyramid, @route and @attention that are
/// wanted, dynamic in B, Tq and Tk. Their arguments, each present if it is
/// used, in this order:
///   build_pyramid: k, k_len, pyramid, open_sums, atoms, outlier
///   route: q, k, pyramid, atoms, outlier, k_len, q_start, scale, indices,
///          count, scores
///   attention: q, k, v, indices, k_len, q_start, scale, out, lse
std::string printModule(const KernelSpec &spec);

} // namespace pisa

#endif // PISA_KERNELS_KERNELSPEC_H
