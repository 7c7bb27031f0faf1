//===- CudaKernel.cpp - Kernels for NVIDIA GPUs -----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Kernels/CudaKernel.h"

#include "Arguments.h"
#include "ParsedSpec.h"

#include "pisa/Compiler/Cuda.h"
#include "pisa/Runtime/CudaRuntime.h"

using namespace pisa;

namespace {
/// Where the value of an argument comes from.
struct Source {
  CpuArgument CheckedCall::*tensor = nullptr;
  int64_t CheckedCall::*size = nullptr; // if it is no tensor; neither: scale
};
} // namespace

static std::optional<Source> findSource(llvm::StringRef name) {
  static const std::pair<const char *, CpuArgument CheckedCall::*> tensors[] = {
      {"q", &CheckedCall::q},
      {"k", &CheckedCall::k},
      {"v", &CheckedCall::v},
      {"k_len", &CheckedCall::kLen},
      {"q_start", &CheckedCall::qStart},
      {"pyramid", &CheckedCall::pyramid},
      {"open_sums", &CheckedCall::openSums},
      {"atoms", &CheckedCall::atoms},
      {"outlier", &CheckedCall::outlier},
      {"indices", &CheckedCall::indices},
      {"count", &CheckedCall::count},
      {"scores", &CheckedCall::scores},
      {"out", &CheckedCall::out},
      {"lse", &CheckedCall::lse}};
  static const std::pair<const char *, int64_t CheckedCall::*> sizes[] = {
      {"rows", &CheckedCall::rows},
      {"leaves", &CheckedCall::leaves},
      {"query_blocks", &CheckedCall::queryBlocks}};
  for (auto [known, member] : tensors)
    if (name == known)
      return Source{member, nullptr};
  for (auto [known, member] : sizes)
    if (name == known)
      return Source{nullptr, member};
  if (name == "scale")
    return Source();
  return std::nullopt;
}

struct CudaKernel::Code {
  std::unique_ptr<CudaExecutable> executable;
  std::vector<Source> sources; // of the plan's arguments
};

CudaKernel::CudaKernel(const KernelSpec &spec, std::string chip,
                       std::optional<ObjectCache> cache)
    : spec(spec), chip(std::move(chip)), cache(std::move(cache)) {}

CudaKernel::~CudaKernel() = default;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static llvm::Expected<CudaCode> compileText(const std::string &text,
                                            const CudaCompileOptions &options) {
  auto parsed = ParsedSpec::parse(text);
  if (!parsed)
    return parsed.takeError();
  auto code = compileForCuda((*parsed)->getModule(), options);
  const std::string &said = (*parsed)->getSaid();
  if (code || said.empty())
    return code;
  std::string message = llvm::toString(code.takeError());
  if (saysNotImplemented(said))
    return makeError(ErrorKind::Unsupported, said);
  return makeError(ErrorKind::Failed, message + ": " + said);
}

/// Scratch for partial outputs. More queries at a time share the loads of more
/// keys; fewer leave room for everything else within 1 GiB at 128K tokens.
static constexpr int64_t kPartialBytes = 448 << 20;

/// What the cache keeps: a code whose `ptx` is the image.
llvm::Expected<std::unique_ptr<CudaKernel::Code>>
CudaKernel::compile(const CudaVariant &variant) {
  std::string warning;
  bool fromCache = false;
  CudaCompileOptions options;
  options.chip = chip;
  options.checkInputs = spec.checkInputs;
  if (variant.manyKeys)
    options.partialBytes = kPartialBytes;
  std::string text = printCudaModule(spec, variant);
  std::string build = getBuildId();
  bool useCache = cache && !build.empty();
  std::string key = build + "\ncuda " + chip + "\n" + describePtxas() + "\n" +
                    (spec.checkInputs ? "check-inputs\n" : "\n") +
                    std::to_string(options.partialBytes) + "\n" + text;
  std::optional<CudaCode> code;
  if (useCache) {
    ObjectCache::Lookup found = cache->load(key);
    warning = found.warning;
    if (found.object) {
      auto read = CudaCode::deserialize(found.object->getBuffer());
      if (read) {
        code = std::move(*read);
        fromCache = true;
      } else {
        llvm::consumeError(read.takeError());
      }
    }
  }
  if (!code) {
    auto compiled = compileText(text, options);
    if (!compiled)
      return compiled.takeError();
    code = std::move(*compiled);
    std::string refused;
    code->ptx = makeCudaImage(*code, refused);
    if (warning.empty())
      warning = refused;
    if (useCache && refused.empty()) {
      std::string stored = cache->store(key, code->serialize());
      if (warning.empty())
        warning = stored;
    }
  }
  const Plan *plan = code->find(cudaFunctionName);
  if (!plan)
    return llvm::createStringError("the code lacks its function");
  auto result = std::make_unique<Code>();
  for (const PlanArgument &argument : plan->arguments) {
    std::optional<Source> source = findSource(argument.name);
    if (!source)
      return llvm::createStringError("the code has an argument '" +
                                     argument.name + "' that calls lack");
    result->sources.push_back(*source);
  }
  RuntimeOr<std::unique_ptr<CudaExecutable>> executable =
      CudaExecutable::create(*plan, std::move(code->ptx));
  if (!executable)
    return toError(executable.getStatus());
  result->executable = std::move(*executable);
  // Others may be reading what `create` left here.
  if (codes.empty()) {
    this->warning = warning;
    this->fromCache = fromCache;
  }
  return result;
}

llvm::Expected<CudaKernel::Code *>
CudaKernel::getCode(const CudaVariant &variant) {
  std::atomic<Code *> &place = byVariant[variant.getIndex()];
  if (Code *code = place.load(std::memory_order_acquire))
    return code;
  std::lock_guard<std::mutex> lock(mutex);
  if (Code *code = place.load(std::memory_order_acquire))
    return code;
  auto code = compile(variant);
  if (!code)
    return code.takeError();
  codes.push_back(std::move(*code));
  place.store(codes.back().get(), std::memory_order_release);
  return codes.back().get();
}

llvm::Expected<std::unique_ptr<CudaKernel>>
CudaKernel::create(const KernelSpec &spec, const std::string &chip,
                   std::optional<ObjectCache> cache,
                   const CudaVariant &variant) {
  if (auto error = checkSpec(spec))
    return error;
  std::unique_ptr<CudaKernel> kernel(
      new CudaKernel(spec, chip, std::move(cache)));
  auto code = kernel->getCode(variant);
  if (!code)
    return code.takeError();
  return kernel;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

llvm::Error CudaKernel::run(const KernelArguments &given, void *stream,
                            RunInfo *info) {
  CheckedCall call(spec, given, CheckedCall::Memory::Cuda);
  if (auto error = call.checkInputs())
    return error;
  if (auto error = call.keepPositions())
    return error;
  if (auto error = call.checkOthers())
    return error;
  CudaVariant variant;
  variant.kLen = given.kLen;
  variant.qStart = given.qStart;
  variant.indices = call.isWhole() && given.indices;
  variant.setKeys(spec, call.keys);
  auto code = getCode(variant);
  if (!code)
    return code.takeError();
  llvm::SmallVector<ArgumentValue, 20> values;
  for (const Source &source : (*code)->sources) {
    if (source.tensor) {
      const CpuArgument &tensor = call.*source.tensor;
      values.push_back(ArgumentValue::tensor(tensor.data, tensor.sizes.data(),
                                             tensor.strides.data()));
    } else if (source.size) {
      values.push_back(ArgumentValue::scalar(uint64_t(call.*source.size)));
    } else {
      values.push_back(ArgumentValue::scalar(given.scale));
    }
  }
  int64_t scratchBytes = 0;
  if (auto error = toError((*code)->executable->run(
          values.data(), values.size(), stream, &scratchBytes)))
    return error;
  if (info)
    info->scratchBytes = scratchBytes;
  return llvm::Error::success();
}
