//===- Kernel.cpp - Compiled kernels, called with tensors -------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Kernels/Kernel.h"

#include "Arguments.h"

#include "pisa/Compiler/Compile.h"
#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/IR/PyramidLayout.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace pisa;
using Use = ArgumentChecker::Use;
using Layout = ArgumentChecker::Layout;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// What the dialect allows but code is not made for, and what no module could
/// be printed from.
static llvm::Error checkSpec(const KernelSpec &spec) {
  bool whole = spec.functions == AllFunctions;
  if (!whole && spec.functions != BuildPyramidFunction &&
      spec.functions != RouteFunction && spec.functions != AttentionFunction)
    return makeError(ErrorKind::InvalidValue,
                     "expected one function or all three, but got the set " +
                         llvm::Twine(spec.functions));
  if (whole && spec.listWidth != spec.params.topk)
    return makeError(
        ErrorKind::InvalidValue,
        "expected lists as wide as topk = " + llvm::Twine(spec.params.topk) +
            " in a whole forward pass, but got " + llvm::Twine(spec.listWidth));
  for (auto [name, value] :
       {std::pair("D", spec.headDim), std::pair("Dv", spec.valueDim)})
    if (value < 8 || value > 256 || value % 8 != 0)
      return makeError(ErrorKind::Unsupported,
                       "expected head dimension " + llvm::Twine(name) +
                           " to be a multiple of 8 in [8, 256], but got " +
                           llvm::Twine(value));
  if (spec.kvHeads < 1 || spec.heads < 1 || spec.heads % spec.kvHeads != 0)
    return makeError(ErrorKind::InvalidValue,
                     "expected the number of query heads Hq to be a positive "
                     "multiple of the number of kv heads Hkv, but got " +
                         llvm::Twine(spec.heads) + " and " +
                         llvm::Twine(spec.kvHeads));
  if (spec.functions == AttentionFunction && spec.listWidth < 1)
    return makeError(ErrorKind::InvalidValue,
                     "expected lists of at least 1 entry, but got " +
                         llvm::Twine(spec.listWidth));
  return llvm::Error::success();
}

namespace {
/// A parsed module and what was said about it.
class ParsedSpec {
public:
  static llvm::Expected<std::unique_ptr<ParsedSpec>>
  parse(const std::string &text) {
    std::unique_ptr<ParsedSpec> parsed(new ParsedSpec());
    parsed->module =
        mlir::parseSourceString<mlir::ModuleOp>(text, parsed->context.get());
    if (!parsed->module)
      return makeError(ErrorKind::InvalidValue, parsed->said);
    return parsed;
  }
  mlir::ModuleOp getModule() { return *module; }
  const std::string &getSaid() const { return said; }

private:
  ParsedSpec()
      : context(createContext()),
        handler(context.get(), [this](mlir::Diagnostic &diagnostic) {
          if (said.empty())
            said = diagnostic.str();
          return mlir::success();
        }) {}
  std::unique_ptr<mlir::MLIRContext> context;
  std::string said; // the first message
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};
} // namespace

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

llvm::Expected<std::string> pisa::explain(const KernelSpec &spec,
                                          const std::string &cpu) {
  if (auto error = checkSpec(spec))
    return error;
  auto target = CpuTarget::get(cpu);
  if (!target)
    return makeError(ErrorKind::InvalidValue,
                     llvm::toString(target.takeError()));
  auto parsed = ParsedSpec::parse(printModule(spec));
  if (!parsed)
    return parsed.takeError();
  mlir::PassManager pm((*parsed)->getModule().getContext());
  mlir::pisa::PisaSetLoweringConfigPassOptions options;
  options.vectorBits = target->vectorBits;
  pm.addPass(mlir::pisa::createPisaSetLoweringConfigPass(options));
  if (failed(pm.run((*parsed)->getModule())))
    return makeError(ErrorKind::Failed, (*parsed)->getSaid());
  llvm::json::Object functions;
  (*parsed)->getModule().walk([&](mlir::Operation *op) {
    auto config =
        op->getAttrOfType<mlir::pisa::LoweringConfigAttr>("lowering_config");
    if (!config)
      return;
    functions[op->getParentOfType<mlir::func::FuncOp>().getName()] =
        llvm::json::Object{{"query_tile", config.getQueryTile()},
                           {"leaf_tile", config.getLeafTile()},
                           {"row_tile", config.getRowTile()},
                           {"column_tile", config.getColumnTile()}};
  });
  llvm::json::Object result{{"target", "cpu"},
                            {"cpu", target->cpu},
                            {"vector_bits", target->vectorBits},
                            {"strategy", "query tiles"},
                            {"tiles", std::move(functions)}};
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(result));
  return text;
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
  bool builds = spec.functions & BuildPyramidFunction;
  bool routes = spec.functions & RouteFunction;
  bool attends = spec.functions & AttentionFunction;
  const KernelParams &params = spec.params;
  DLDataType dtype = getDLType(spec.dtype);
  DLDataType summary = getDLType(spec.getSummaryType());
  mlir::pisa::PyramidLayout layout{params.blockSize, params.fanout};

  ArgumentChecker check(given.headsInside);
  check.bind(Axis::Hq, spec.heads, "as the kernel was made for");
  check.bind(Axis::Hkv, spec.kvHeads, "as the kernel was made for");
  check.bind(Axis::D, spec.headDim, "as the kernel was made for");
  check.bind(Axis::Dv, spec.valueDim, "as the kernel was made for");
  check.bind(Axis::K, attends ? spec.listWidth : params.topk,
             "as the kernel was made for");
  check.bind(Axis::A, params.leafAtoms, "which is leaf_atoms");

  // Inputs; their sizes give those of all others.
  CpuArgument q, v;
  if (routes || attends)
    q = check.tensor("q", given.q, dtype,
                     {Axis::B, Axis::Hq, Axis::Tq, Axis::D}, Use::Input,
                     Layout::Heads);
  CpuArgument k =
      check.tensor("k", given.k, dtype, {Axis::B, Axis::Hkv, Axis::Tk, Axis::D},
                   Use::Input, Layout::Heads);
  if (attends)
    v = check.tensor("v", given.v, dtype,
                     {Axis::B, Axis::Hkv, Axis::Tk, Axis::Dv}, Use::Input,
                     Layout::Heads);
  if (check.failed())
    return check.takeError();
  int64_t batch = check.getSize(Axis::B), keys = check.getSize(Axis::Tk);
  // A length of each sequence is kept here, however the tensors are strided.
  constexpr int64_t mostSequences = 1 << 24;
  if (batch > mostSequences)
    return makeError(ErrorKind::InvalidValue,
                     "expected B to be at most " + llvm::Twine(mostSequences) +
                         ", but got " + llvm::Twine(batch));
  if (keys > std::numeric_limits<int32_t>::max())
    return makeError(
        ErrorKind::InvalidValue,
        "expected at most 2147483647 keys in a sequence, but got " +
            llvm::Twine(keys));

  llvm::SmallVector<int32_t, 8> kLen, qStart;
  if (given.kLen)
    check.perSequence("k_len", given.kLen, 0, keys, kLen);
  else
    kLen.assign(batch, static_cast<int32_t>(keys));
  if (routes || attends) {
    int64_t queries = check.getSize(Axis::Tq);
    if (!spec.hasQStart) {
      check.refuse("q_start", given.qStart,
                   "of a kernel that was made without it");
    } else if (given.qStart) {
      check.perSequence("q_start", given.qStart,
                        std::numeric_limits<int32_t>::min(),
                        std::numeric_limits<int32_t>::max(), qStart);
    } else {
      // The last query stands at the last key. Lengths that vary may leave
      // queries before the first key, which see none; a whole tensor may not.
      if (params.causal && !given.kLen && keys > 0 && queries > keys)
        return makeError(ErrorKind::InvalidValue,
                         "expected Tq to be at most Tk = " + llvm::Twine(keys) +
                             " in causal attention without q_start, but got " +
                             llvm::Twine(queries));
      for (int32_t length : kLen)
        qStart.push_back(static_cast<int32_t>(length - queries));
    }
    for (auto [b, start] : llvm::enumerate(qStart))
      if (start % params.queryBlock != 0)
        return makeError(ErrorKind::InvalidValue,
                         "expected q_start[" + llvm::Twine(b) +
                             "] to be a multiple of query_block = " +
                             llvm::Twine(params.queryBlock) + ", but got " +
                             llvm::Twine(start));
    if (std::isnan(given.scale))
      return makeError(ErrorKind::InvalidValue,
                       "expected softmax_scale to be a number, but got NaN");
    check.bind(Axis::NQ, llvm::divideCeilSigned(queries, params.queryBlock),
               "which is ceil(Tq / query_block)");
  }
  int64_t leaves = layout.getNumLeaves(keys), rows = layout.getNumRows(keys);
  check.bind(Axis::Rows, rows, "the nodes over Tk keys");
  check.bind(Axis::Levels, layout.getNumLevels(keys),
             "the levels over Tk keys");
  check.bind(Axis::Leaves, leaves, "which is ceil(Tk / block_size)");

  // Between the functions, or given by the caller: the pyramid and the lists.
  bool fused = spec.functions == AllFunctions;
  Scratch scratch;
  CpuArgument pyramid, atoms, outlier, indices;
  CpuArgument *scratchPyramid = nullptr, *scratchAtoms = nullptr,
              *scratchOutlier = nullptr, *scratchIndices = nullptr;
  const char *inside = "of the whole forward pass, which has its own";
  if (fused) {
    check.refuse("pyramid", given.pyramid, inside);
    check.refuse("atoms", given.atoms, inside);
    check.refuse("outlier", given.outlier, inside);
    scratchPyramid = scratch.add(spec.getSummaryType(),
                                 {batch, spec.kvHeads, rows, spec.headDim});
    if (spec.usesAtoms()) {
      scratchAtoms =
          scratch.add(spec.getSummaryType(), {batch, spec.kvHeads, leaves,
                                              params.leafAtoms, spec.headDim});
      scratchOutlier = scratch.addInt32({batch, spec.kvHeads, leaves});
    }
  } else if (builds || routes) {
    Use use = builds ? Use::Output : Use::Input;
    pyramid = check.tensor("pyramid", given.pyramid, summary,
                           {Axis::B, Axis::Hkv, Axis::Rows, Axis::D}, use);
    if (spec.usesAtoms()) {
      atoms = check.tensor("atoms", given.atoms, summary,
                           {Axis::B, Axis::Hkv, Axis::Leaves, Axis::A, Axis::D},
                           use);
      outlier = check.tensor("outlier", given.outlier, kInt32,
                             {Axis::B, Axis::Hkv, Axis::Leaves}, use);
    } else {
      check.refuse("atoms", given.atoms, "without rerank");
      check.refuse("outlier", given.outlier, "without rerank");
    }
  }
  if (fused && !given.indices)
    scratchIndices = scratch.addInt32(
        {batch, spec.kvHeads, check.getSize(Axis::NQ), params.topk});
  else if (routes || attends)
    indices = check.tensor("indices", given.indices, kInt32,
                           {Axis::B, Axis::Hkv, Axis::NQ, Axis::K},
                           routes ? Use::Output : Use::Input);

  // Outputs.
  auto output = [&](bool wanted, const char *name, const DLTensor *tensor,
                    DLDataType type, llvm::ArrayRef<Axis> axes,
                    Layout order = Layout::Plain) {
    if (wanted)
      return check.tensor(name, tensor, type, axes, Use::Output, order);
    check.refuse(name, tensor, "of a kernel that was made without it");
    return CpuArgument();
  };
  CpuArgument openSums =
      output(builds && spec.wantOpenSums, "open_sums", given.openSums, kFloat32,
             {Axis::B, Axis::Hkv, Axis::Levels, Axis::D});
  CpuArgument count = output(routes && spec.wantCount, "count", given.count,
                             kInt32, {Axis::B, Axis::Hkv, Axis::NQ});
  CpuArgument scores =
      output(routes && spec.wantScores, "scores", given.scores, kFloat32,
             {Axis::B, Axis::Hkv, Axis::NQ, Axis::K});
  CpuArgument out =
      output(attends, "out", given.out, dtype,
             {Axis::B, Axis::Hq, Axis::Tq, Axis::Dv}, Layout::Heads);
  CpuArgument lse = output(attends && spec.wantLse, "lse", given.lse, kFloat32,
                           {Axis::B, Axis::Hq, Axis::Tq});
  if (check.failed())
    return check.takeError();

  if (auto error = scratch.allocate())
    return error;
  if (scratchPyramid)
    pyramid = *scratchPyramid;
  if (scratchAtoms) {
    atoms = *scratchAtoms;
    outlier = *scratchOutlier;
  }
  if (scratchIndices)
    indices = *scratchIndices;
  CpuArgument lengths = CpuArgument::array(kLen.data(), {batch});
  CpuArgument starts = CpuArgument::array(qStart.data(), {batch});
  CpuArgument scale = CpuArgument::scalar(given.scale);

  // In the order that KernelSpec.h states.
  Invocation invocation(pool);
  llvm::SmallVector<CpuArgument, 11> arguments;
  auto positions = [&] {
    arguments.push_back(lengths);
    if (spec.hasQStart)
      arguments.push_back(starts);
    arguments.push_back(scale);
  };
  auto call = [&](CpuModule::Entry entry) -> llvm::Error {
    auto error = CpuModule::call(entry, arguments, invocation);
    arguments.clear();
    return error;
  };
  if (builds) {
    arguments.append({k, lengths, pyramid});
    if (spec.wantOpenSums)
      arguments.push_back(openSums);
    if (spec.usesAtoms())
      arguments.append({atoms, outlier});
    if (auto error = call(buildPyramid))
      return error;
  }
  if (routes) {
    arguments.append({q, k, pyramid});
    if (spec.usesAtoms())
      arguments.append({atoms, outlier});
    positions();
    arguments.push_back(indices);
    if (spec.wantCount)
      arguments.push_back(count);
    if (spec.wantScores)
      arguments.push_back(scores);
    if (auto error = call(route))
      return error;
  }
  if (attends) {
    arguments.append({q, k, v, indices});
    positions();
    arguments.push_back(out);
    if (spec.wantLse)
      arguments.push_back(lse);
    if (auto error = call(attention))
      return error;
  }
  if (info)
    info->scratchBytes = scratch.getBytes() + invocation.getPeakScratch();
  return llvm::Error::success();
}
