//===- CudaKernel.h - Kernels for NVIDIA GPUs -------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_KERNELS_CUDAKERNEL_H
#define PISA_KERNELS_CUDAKERNEL_H

#include "pisa/Kernels/Kernel.h"

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

namespace pisa {

/// Which tensors calls give beyond those they must. Code differs: what is not
/// given is made on the device, so that no call copies anything to it.
struct CudaVariant {
  bool kLen = false;
  bool qStart = false;
  bool indices = false;  ///< of a whole forward pass
  bool manyKeys = false; ///< see `setKeys`

  /// Tiles of queries visit the union of their lists, which a few keys bound:
  /// where there are many, attention goes block by block of keys, if that is
  /// not slower for the spec (pisa-set-lowering-config decides).
  void setKeys(const KernelSpec &spec, int64_t keys) {
    manyKeys = (spec.functions & AttentionFunction) && keys >= kManyKeys;
  }
  static constexpr int64_t kManyKeys = 16384;

  unsigned getIndex() const {
    return kLen | qStart << 1 | indices << 2 | manyKeys << 3;
  }
  static constexpr unsigned count = 16;
};

/// The function of `printCudaModule`.
inline constexpr const char *cudaFunctionName = "pisa";

/// A module with one function, dynamic in B, Tq and Tk. Its arguments have the
/// names of KernelArguments' tensors in the attribute pisa.name; scalars are
/// scale and the sizes rows, leaves and query_blocks of what is in between.
std::string printCudaModule(const KernelSpec &spec, const CudaVariant &variant);

/// Code for a KernelSpec on GPUs of one chip: as `Kernel`, but tensors are on
/// one device, and a call only puts work on a stream. It may be captured into a
/// graph. Values on the device are not read: lengths that are wrong there are
/// not reported. With `checkInputs` a call waits for the check of its lists,
/// and cannot be captured.
class CudaKernel {
public:
  /// Compiles the code for `variant`, or takes it from the cache; other code is
  /// made in the first call that needs it. Refused specs are StatusErrors.
  static llvm::Expected<std::unique_ptr<CudaKernel>>
  create(const KernelSpec &spec, const std::string &chip,
         std::optional<ObjectCache> cache, const CudaVariant &variant = {});
  ~CudaKernel();

  /// `stream`: a CUstream, null for the default one.
  llvm::Error run(const KernelArguments &arguments, void *stream,
                  RunInfo *info = nullptr);

  const KernelSpec &getSpec() const { return spec; }
  const std::string &getChip() const { return chip; }
  /// Of `create`.
  const std::string &getWarning() const { return warning; }
  bool isFromCache() const { return fromCache; }

private:
  struct Code;
  CudaKernel(const KernelSpec &spec, std::string chip,
             std::optional<ObjectCache> cache);
  llvm::Expected<Code *> getCode(const CudaVariant &variant);
  llvm::Expected<std::unique_ptr<Code>> compile(const CudaVariant &variant);

  KernelSpec spec;
  std::string chip;
  std::optional<ObjectCache> cache;
  std::string warning;
  bool fromCache = false;
  std::mutex mutex; // held while code is made
  std::vector<std::unique_ptr<Code>> codes;
  std::array<std::atomic<Code *>, CudaVariant::count> byVariant = {};
};

/// As `explain`, for a GPU that need not be there.
llvm::Expected<std::string> explainForCuda(const KernelSpec &spec,
                                           const std::string &chip);

} // namespace pisa

#endif // PISA_KERNELS_CUDAKERNEL_H
