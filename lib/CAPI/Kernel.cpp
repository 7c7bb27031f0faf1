//===- Kernel.cpp - Kernels from C ------------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa-c/Kernel.h"

#include "Support.h"

#include "pisa/Compiler/Cuda.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"
#include "pisa/Kernels/CudaKernel.h"

#include <cstddef>
#include <cstring>

using namespace pisa;

/// One of them.
struct PisaKernel {
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<CudaKernel> cudaKernel;
};

/// The caller's spec as we have it now.
static llvm::Expected<PisaKernelSpec> readSpec(const PisaKernelSpec *given) {
  constexpr size_t earlier = offsetof(PisaKernelSpec, target);
  PisaKernelSpec spec = {};
  if (given && given->struct_size == earlier) {
    std::memcpy(&spec, given, earlier);
    return spec;
  }
  if (auto error = capi::checkStruct("PisaKernelSpec", given,
                                     given ? given->struct_size : 0,
                                     sizeof(PisaKernelSpec)))
    return error;
  return *given;
}

static std::optional<int64_t> optional(int64_t value) {
  return value == -1 ? std::nullopt : std::optional<int64_t>(value);
}

static llvm::Expected<std::optional<ElementType>>
getElementType(const char *name, int32_t dtype) {
  switch (dtype) {
  case PISA_DTYPE_DEFAULT:
    return std::nullopt;
  case PISA_F32:
    return ElementType::F32;
  case PISA_F16:
    return ElementType::F16;
  case PISA_BF16:
    return ElementType::BF16;
  }
  return makeError(ErrorKind::InvalidType,
                   llvm::Twine("expected ") + name +
                       " to be f32 (1), f16 (2) or bf16 (3), but got " +
                       llvm::Twine(dtype));
}

static llvm::Expected<KernelSpec> getSpec(const PisaKernelSpec *given) {
  auto dtype = getElementType("dtype", given->dtype);
  if (!dtype)
    return dtype.takeError();
  if (!*dtype)
    return makeError(ErrorKind::InvalidType, "expected a dtype, but got none");
  auto summary = getElementType("summary_dtype", given->summary_dtype);
  if (!summary)
    return summary.takeError();
  constexpr uint32_t allFlags = 2 * PISA_EXPECT_MANY_KEYS - 1;
  if (given->flags & ~allFlags)
    return makeError(ErrorKind::InvalidValue,
                     "expected flags below " + llvm::Twine(allFlags + 1) +
                         ", but got " + llvm::Twine(given->flags));
  auto has = [&](uint32_t flag) { return (given->flags & flag) != 0; };
  if (has(PISA_WITHOUT_Q_START) && given->causal)
    return makeError(ErrorKind::InvalidValue,
                     "expected queries without positions only where causal is "
                     "false");
  KernelSpec spec;
  spec.functions = given->function;
  spec.params = {given->block_size,
                 given->fanout,
                 given->topk,
                 optional(given->beam),
                 optional(given->rerank),
                 given->leaf_atoms,
                 given->query_block,
                 given->sink_blocks,
                 given->local_blocks,
                 given->causal != 0,
                 *summary};
  spec.dtype = **dtype;
  spec.heads = given->heads;
  spec.kvHeads = given->kv_heads;
  spec.headDim = given->head_dim;
  spec.valueDim = given->value_dim;
  spec.listWidth = optional(given->list_width).value_or(given->topk);
  spec.hasQStart = !has(PISA_WITHOUT_Q_START);
  spec.wantOpenSums = has(PISA_WANT_OPEN_SUMS);
  spec.wantCount = has(PISA_WANT_COUNT);
  spec.wantScores = has(PISA_WANT_SCORES);
  spec.wantLse = has(PISA_WANT_LSE);
  spec.checkInputs = has(PISA_CHECK_INPUTS);
  return spec;
}

static llvm::Expected<std::string> getChip(const PisaKernelSpec &given) {
  return given.chip ? llvm::Expected<std::string>(given.chip)
                    : getChipOfDevice(given.device);
}

/// Fails for a target that is neither CUDA, which is done, nor the CPU.
static llvm::Error requireCpu(const PisaKernelSpec &given) {
  if (given.target == PISA_TARGET_CPU)
    return llvm::Error::success();
  return makeError(ErrorKind::InvalidValue,
                   "expected target to be the CPU (0) or CUDA (1), but got " +
                       llvm::Twine(given.target));
}

void pisaKernelSpecInit(PisaKernelSpec *spec) {
  KernelParams defaults;
  *spec = {};
  spec->struct_size = sizeof(PisaKernelSpec);
  spec->function = PISA_FORWARD;
  spec->list_width = -1;
  spec->block_size = defaults.blockSize;
  spec->fanout = defaults.fanout;
  spec->topk = defaults.topk;
  spec->beam = -1;
  spec->rerank = -1;
  spec->leaf_atoms = defaults.leafAtoms;
  spec->query_block = defaults.queryBlock;
  spec->sink_blocks = defaults.sinkBlocks;
  spec->local_blocks = defaults.localBlocks;
  spec->causal = defaults.causal;
}

PisaStatus pisaKernelCreate(const PisaKernelSpec *given, PisaKernel **result) {
  if (!result)
    return capi::finish(makeError(ErrorKind::InvalidType,
                                  "expected a place for the kernel, but got a "
                                  "null pointer"));
  *result = nullptr;
  auto read = readSpec(given);
  if (!read)
    return capi::finish(read.takeError());
  given = &*read;
  auto spec = getSpec(given);
  if (!spec)
    return capi::finish(spec.takeError());
  std::string directory = given->cache_directory
                              ? given->cache_directory
                              : ObjectCache::getDefaultDirectory();
  ObjectCache cache(directory);
  if (given->target == PISA_TARGET_CUDA) {
    auto chip = getChip(*given);
    if (!chip)
      return capi::finish(chip.takeError());
    CudaVariant variant;
    variant.kLen = given->flags & PISA_EXPECT_K_LEN;
    variant.qStart = spec->hasQStart && (given->flags & PISA_EXPECT_Q_START);
    variant.indices = spec->functions == AllFunctions &&
                      (given->flags & PISA_EXPECT_INDICES);
    if (given->flags & PISA_EXPECT_MANY_KEYS)
      variant.setKeys(*spec, PISA_MANY_KEYS);
    auto kernel = CudaKernel::create(
        *spec, *chip,
        directory.empty() ? std::nullopt : std::optional<ObjectCache>(cache),
        variant);
    if (!kernel)
      return capi::finish(kernel.takeError());
    *result = new PisaKernel{nullptr, std::move(*kernel)};
    return PISA_SUCCESS;
  }
  if (auto error = requireCpu(*given))
    return capi::finish(std::move(error));
  auto kernel = Kernel::create(*spec, given->cpu ? given->cpu : "",
                               directory.empty() ? nullptr : &cache);
  if (!kernel)
    return capi::finish(kernel.takeError());
  *result = new PisaKernel{std::move(*kernel), nullptr};
  return PISA_SUCCESS;
}

void pisaKernelDestroy(PisaKernel *kernel) { delete kernel; }

PisaStatus pisaKernelRun(PisaKernel *kernel, const PisaTensors *tensors,
                         void *stream, PisaRunInfo *info) {
  if (!kernel)
    return capi::finish(makeError(ErrorKind::InvalidType,
                                  "expected a kernel, but got a null pointer"));
  if (auto error = capi::checkStruct("PisaTensors", tensors,
                                     tensors ? tensors->struct_size : 0,
                                     sizeof(PisaTensors)))
    return capi::finish(std::move(error));
  if (info)
    if (auto error = capi::checkStruct("PisaRunInfo", info, info->struct_size,
                                       sizeof(PisaRunInfo)))
      return capi::finish(std::move(error));
  if (stream && kernel->kernel)
    return capi::finish(makeError(ErrorKind::InvalidValue,
                                  "expected no stream for a CPU kernel"));
  KernelArguments arguments;
  arguments.q = tensors->q;
  arguments.k = tensors->k;
  arguments.v = tensors->v;
  arguments.kLen = tensors->k_len;
  arguments.qStart = tensors->q_start;
  arguments.pyramid = tensors->pyramid;
  arguments.openSums = tensors->open_sums;
  arguments.atoms = tensors->atoms;
  arguments.outlier = tensors->outlier;
  arguments.indices = tensors->indices;
  arguments.count = tensors->count;
  arguments.scores = tensors->scores;
  arguments.out = tensors->out;
  arguments.lse = tensors->lse;
  arguments.headsInside = tensors->heads_inside != 0;
  arguments.scale = tensors->softmax_scale;
  RunInfo taken;
  if (kernel->cudaKernel) {
    if (auto error = kernel->cudaKernel->run(arguments, stream,
                                             info ? &taken : nullptr))
      return capi::finish(std::move(error));
  } else {
    std::shared_ptr<ThreadPool> pool = capi::getPool();
    if (auto error = kernel->kernel->run(arguments, *pool, &taken))
      return capi::finish(std::move(error));
  }
  if (info)
    info->scratch_bytes = taken.scratchBytes;
  return PISA_SUCCESS;
}

const char *pisaKernelGetWarning(const PisaKernel *kernel) {
  if (!kernel)
    return "";
  return kernel->kernel ? kernel->kernel->getWarning().c_str()
                        : kernel->cudaKernel->getWarning().c_str();
}

int32_t pisaKernelIsFromCache(const PisaKernel *kernel) {
  if (!kernel)
    return 0;
  return kernel->kernel ? kernel->kernel->isFromCache()
                        : kernel->cudaKernel->isFromCache();
}

PisaStatus pisaExplain(const PisaKernelSpec *given, const char **json) {
  static thread_local std::string text;
  auto read = readSpec(given);
  if (!read)
    return capi::finish(read.takeError());
  given = &*read;
  auto spec = getSpec(given);
  if (!spec)
    return capi::finish(spec.takeError());
  if (given->target == PISA_TARGET_CUDA) {
    auto chip = getChip(*given);
    if (!chip)
      return capi::finish(chip.takeError());
    auto explained = explainForCuda(*spec, *chip);
    if (!explained)
      return capi::finish(explained.takeError());
    text = *explained;
    *json = text.c_str();
    return PISA_SUCCESS;
  }
  if (auto error = requireCpu(*given))
    return capi::finish(std::move(error));
  auto explained = explain(*spec, given->cpu ? given->cpu : "");
  if (!explained)
    return capi::finish(explained.takeError());
  text = *explained;
  *json = text.c_str();
  return PISA_SUCCESS;
}

static bool isTree(int64_t keys, int64_t blockSize, int64_t fanout) {
  return keys >= 0 && blockSize >= 1 && fanout >= 2;
}

int64_t pisaGetPyramidRows(int64_t keys, int64_t blockSize, int64_t fanout) {
  if (!isTree(keys, blockSize, fanout))
    return -1;
  return mlir::pisa::PyramidLayout{blockSize, fanout}.getNumRows(keys);
}

int64_t pisaGetPyramidLevels(int64_t keys, int64_t blockSize, int64_t fanout) {
  if (!isTree(keys, blockSize, fanout))
    return -1;
  return mlir::pisa::PyramidLayout{blockSize, fanout}.getNumLevels(keys);
}
