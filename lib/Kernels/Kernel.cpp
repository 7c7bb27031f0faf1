//===- Kernel.cpp - Compiled kernels, called with tensors -------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Kernels/Kernel.h"

#include "Arguments.h"
#include "ParsedSpec.h"

#include "pisa/Compiler/Compile.h"

#include "llvm/Support/MathExtras.h"
#include <cstdlib>

using namespace pisa;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileText(const std::string &text, const CompileOptions &options) {
  auto parsed = ParsedSpec::parse(text);
  if (!parsed)
    return parsed.takeError();
  auto object = compileToObjectForCpu((*parsed)->getModule(), options);
  if (object || (*parsed)->getSaid().empty())
    return object;
  return makeError(ErrorKind::Failed, llvm::toString(object.takeError()) +
                                          ": " + (*parsed)->getSaid());
}

llvm::Expected<std::unique_ptr<Kernel>>
Kernel::create(const KernelSpec &spec, const std::string &cpu,
               const ObjectCache *cache) {
  if (auto error = checkSpec(spec))
    return error;
  auto target = CpuTarget::get(cpu);
  if (!target)
    return makeError(ErrorKind::InvalidValue,
                     llvm::toString(target.takeError()));
  CompileOptions options;
  options.cpu = cpu;
  options.checkInputs = spec.checkInputs;
  std::string text = printModule(spec);
  std::unique_ptr<Kernel> kernel(new Kernel(spec));
  std::unique_ptr<llvm::MemoryBuffer> object;

  std::string build = getBuildId();
  if (build.empty())
    cache = nullptr;
  std::string key = build + "\n" + target->cpu + "\n" + target->features +
                    "\n" + (spec.checkInputs ? "check-inputs\n" : "\n") + text;
  if (cache) {
    ObjectCache::Lookup found = cache->load(key);
    object = std::move(found.object);
    kernel->warning = found.warning;
    kernel->fromCache = object != nullptr;
  }
  if (!object) {
    auto compiled = compileText(text, options);
    if (!compiled)
      return compiled.takeError();
    object = std::move(*compiled);
    if (cache) {
      std::string warning = cache->store(key, object->getBuffer());
      if (kernel->warning.empty())
        kernel->warning = warning;
    }
  }
  auto module = CpuModule::load(std::move(object));
  if (!module)
    return module.takeError();
  kernel->module = std::move(*module);
  for (auto [flag, name, entry] :
       {std::tuple(BuildPyramidFunction, "build_pyramid",
                   &kernel->buildPyramid),
        std::tuple(RouteFunction, "route", &kernel->route),
        std::tuple(AttentionFunction, "attention", &kernel->attention)}) {
    if (!(spec.functions & flag))
      continue;
    auto found = kernel->module->lookup(name);
    if (!found)
      return found.takeError();
    *entry = *found;
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
/// Contiguous arrays of a call that only live as long as it.
class Scratch {
public:
  ~Scratch() { std::free(memory); }

  /// Reserves an array of this shape; its data is null until `allocate`.
  CpuArgument *add(ElementType type, llvm::ArrayRef<int64_t> sizes) {
    return add(type == ElementType::F32 ? 4 : 2, sizes);
  }
  CpuArgument *addInt32(llvm::ArrayRef<int64_t> sizes) { return add(4, sizes); }

  llvm::Error allocate() {
    if (overflow)
      return makeError(ErrorKind::OutOfMemory,
                       "out of memory: the pyramid and the lists of blocks "
                       "would take more than 2^63 bytes");
    if (total && posix_memalign(&memory, kAlignment, total) != 0) {
      memory = nullptr;
      return makeError(ErrorKind::OutOfMemory,
                       "out of memory: " + llvm::Twine(total) +
                           " bytes for the pyramid and the lists of blocks "
                           "could not be allocated");
    }
    for (size_t i = 0; i < arrays.size(); ++i)
      arrays[i]->data = static_cast<char *>(memory) + offsets[i];
    return llvm::Error::success();
  }
  int64_t getBytes() const { return total; }

private:
  static constexpr int64_t kAlignment = 64;

  CpuArgument *add(int64_t elementBytes, llvm::ArrayRef<int64_t> sizes) {
    // Sizes of expanded tensors may be far beyond any memory.
    int64_t bytes = elementBytes;
    for (int64_t size : sizes)
      overflow |= __builtin_mul_overflow(bytes, size, &bytes);
    overflow |= __builtin_add_overflow(bytes, kAlignment, &bytes);
    arrays.push_back(
        std::make_unique<CpuArgument>(CpuArgument::array(nullptr, sizes)));
    offsets.push_back(total);
    overflow |= __builtin_add_overflow(
        total, llvm::alignDown(bytes, kAlignment), &total);
    return arrays.back().get();
  }
  llvm::SmallVector<std::unique_ptr<CpuArgument>> arrays;
  llvm::SmallVector<int64_t> offsets;
  int64_t total = 0;
  bool overflow = false;
  void *memory = nullptr;
};
} // namespace

llvm::Error Kernel::run(const KernelArguments &given, ThreadPool &pool,
                        RunInfo *info) {
  const KernelParams &params = spec.params;
  CheckedCall call(spec, given, CheckedCall::Memory::Cpu);
  llvm::SmallVector<int32_t, 8> kLen, qStart;
  if (auto error = call.checkInputs())
    return error;
  if (auto error = call.readPositions(kLen, qStart))
    return error;
  if (auto error = call.checkOthers())
    return error;

  // Between the functions: the pyramid and the lists, unless they are given.
  Scratch scratch;
  CpuArgument *scratchPyramid = nullptr, *scratchAtoms = nullptr,
              *scratchOutlier = nullptr, *scratchIndices = nullptr;
  if (call.isWhole()) {
    scratchPyramid =
        scratch.add(spec.getSummaryType(),
                    {call.batch, spec.kvHeads, call.rows, spec.headDim});
    if (spec.usesAtoms()) {
      scratchAtoms = scratch.add(spec.getSummaryType(),
                                 {call.batch, spec.kvHeads, call.leaves,
                                  params.leafAtoms, spec.headDim});
      scratchOutlier =
          scratch.addInt32({call.batch, spec.kvHeads, call.leaves});
    }
    if (!given.indices)
      scratchIndices = scratch.addInt32(
          {call.batch, spec.kvHeads, call.queryBlocks, params.topk});
  }
  if (auto error = scratch.allocate())
    return error;
  if (scratchPyramid)
    call.pyramid = *scratchPyramid;
  if (scratchAtoms) {
    call.atoms = *scratchAtoms;
    call.outlier = *scratchOutlier;
  }
  if (scratchIndices)
    call.indices = *scratchIndices;
  call.kLen = CpuArgument::array(kLen.data(), {call.batch});
  call.qStart = CpuArgument::array(qStart.data(), {call.batch});
  CpuArgument scale = CpuArgument::scalar(given.scale);

  // In the order that KernelSpec.h states.
  Invocation invocation(pool);
  llvm::SmallVector<CpuArgument, 11> arguments;
  auto positions = [&] {
    arguments.push_back(call.kLen);
    if (spec.hasQStart)
      arguments.push_back(call.qStart);
    arguments.push_back(scale);
  };
  auto enter = [&](CpuModule::Entry entry) -> llvm::Error {
    auto error = CpuModule::call(entry, arguments, invocation);
    arguments.clear();
    return error;
  };
  if (call.builds()) {
    arguments.append({call.k, call.kLen, call.pyramid});
    if (spec.wantOpenSums)
      arguments.push_back(call.openSums);
    if (spec.usesAtoms())
      arguments.append({call.atoms, call.outlier});
    if (auto error = enter(buildPyramid))
      return error;
  }
  if (call.routes()) {
    arguments.append({call.q, call.k, call.pyramid});
    if (spec.usesAtoms())
      arguments.append({call.atoms, call.outlier});
    positions();
    arguments.push_back(call.indices);
    if (spec.wantCount)
      arguments.push_back(call.count);
    if (spec.wantScores)
      arguments.push_back(call.scores);
    if (auto error = enter(route))
      return error;
  }
  if (call.attends()) {
    arguments.append({call.q, call.k, call.v, call.indices});
    positions();
    arguments.push_back(call.out);
    if (spec.wantLse)
      arguments.push_back(call.lse);
    if (auto error = enter(attention))
      return error;
  }
  if (info)
    info->scratchBytes = scratch.getBytes() + invocation.getPeakScratch();
  return llvm::Error::success();
}
