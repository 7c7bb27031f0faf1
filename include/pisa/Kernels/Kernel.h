//===- Kernel.h - Compiled kernels, called with tensors ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_KERNELS_KERNEL_H
#define PISA_KERNELS_KERNEL_H

#include "pisa/Compiler/ObjectCache.h"
#include "pisa/Compiler/Status.h"
#include "pisa/Kernels/KernelSpec.h"
#include "pisa/Target/CpuJit.h"

#include <dlpack/dlpack.h>

namespace pisa {

/// The tensors of a call, borrowed; null where absent. Shapes as in
/// docs/Spec.md; strides in elements, any, but 1 in the last dimension.
struct KernelArguments {
  const DLTensor *q = nullptr;        ///< [B, Hq, Tq, D]
  const DLTensor *k = nullptr;        ///< [B, Hkv, Tk, D]
  const DLTensor *v = nullptr;        ///< [B, Hkv, Tk, Dv]
  const DLTensor *kLen = nullptr;     ///< [B] i32; absent: Tk each
  const DLTensor *qStart = nullptr;   ///< [B] i32; absent: k_len - Tq
  const DLTensor *pyramid = nullptr;  ///< [B, Hkv, rows, D]
  const DLTensor *openSums = nullptr; ///< [B, Hkv, levels, D] f32
  const DLTensor *atoms = nullptr;    ///< [B, Hkv, leaves, A, D]
  const DLTensor *outlier = nullptr;  ///< [B, Hkv, leaves] i32
  const DLTensor *indices = nullptr;  ///< [B, Hkv, NQ, K] i32
  const DLTensor *count = nullptr;    ///< [B, Hkv, NQ] i32
  const DLTensor *scores = nullptr;   ///< [B, Hkv, NQ, K] f32
  const DLTensor *out = nullptr;      ///< [B, Hq, Tq, Dv]
  const DLTensor *lse = nullptr;      ///< [B, Hq, Tq] f32
  /// q, k, v and out are [B, T, H, D] instead.
  bool headsInside = false;
  float scale = 1; ///< multiplies q . k
};

/// What a call took.
struct RunInfo {
  size_t scratchBytes = 0; ///< above inputs and outputs, at its peak
};

/// Code for a KernelSpec. With one function wanted, a call is that function;
/// with all three it is the whole forward pass: the pyramid and what else is in
/// between is scratch, and `indices` and `lse` are written if they are given.
/// Calls may be made from several threads at once.
class Kernel {
public:
  /// Compiles, or takes from the cache. Refused specs are StatusErrors.
  static llvm::Expected<std::unique_ptr<Kernel>>
  create(const KernelSpec &spec, const std::string &cpu,
         const ObjectCache *cache);

  /// Checks every tensor, then runs.
  llvm::Error run(const KernelArguments &arguments, ThreadPool &pool,
                  RunInfo *info = nullptr);

  const KernelSpec &getSpec() const { return spec; }
  /// What went wrong with the cache, "" if nothing.
  const std::string &getWarning() const { return warning; }
  bool isFromCache() const { return fromCache; }

private:
  explicit Kernel(const KernelSpec &spec) : spec(spec) {}

  KernelSpec spec;
  std::string warning;
  bool fromCache = false;
  std::unique_ptr<CpuModule> module;
  CpuModule::Entry buildPyramid = nullptr, route = nullptr, attention = nullptr;
};

/// The choices that would be made for a spec, as a JSON object: CPU, vector
/// width, functions with their tiles.
llvm::Expected<std::string> explain(const KernelSpec &spec,
                                    const std::string &cpu);

} // namespace pisa

#endif // PISA_KERNELS_KERNEL_H
