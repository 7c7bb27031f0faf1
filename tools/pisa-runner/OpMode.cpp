//===- OpMode.cpp - Running one op by shape and parameters ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRun.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace pisa;
using namespace pisa::runner;
using npy::Array;

static llvm::Expected<Array::Type> parseType(llvm::StringRef option,
                                             llvm::StringRef text) {
  auto type = llvm::StringSwitch<std::optional<Array::Type>>(text)
                  .Case("f32", Array::Type::F32)
                  .Case("f16", Array::Type::F16)
                  .Case("bf16", Array::Type::BF16)
                  .Default(std::nullopt);
  if (type)
    return *type;
  return llvm::createStringError("expected --" + option +
                                 " to be f32, f16 or bf16, but got '" + text +
                                 "'");
}

static std::vector<int32_t> toInts(const Array &array) {
  std::vector<int32_t> values(array.numElements());
  std::memcpy(values.data(), array.data.data(),
              values.size() * sizeof(int32_t));
  return values;
}

namespace {
/// Builds the problem and its buffers from options and input files.
class Setup {
public:
  Setup(mlir::MLIRContext &context, const Options &options, const OpOptions &op,
        OpProblem &problem, OpBuffers &buffers)
      : context(context), options(options), op(op), problem(problem),
        buffers(buffers) {}

  llvm::Error run() {
    problem.shape.params = op.params;
    problem.shape.threads = options.threads;
    problem.wantScores = op.scores;
    for (const auto &[name, value] : options.inputs)
      if (!llvm::is_contained(getNames(), name))
        return llvm::createStringError(
            "expected inputs of --op=" + op.op + " to be " +
            llvm::join(getNames(), ", ") + ", but got '" + name + "'");
    if (auto error = readTypes())
      return error;
    if (auto error = readShape())
      return error;
    if (auto error = readLengths())
      return error;
    if (std::optional<std::string> error = checkProblem(context, problem))
      return llvm::createStringError(*error);
    return fill();
  }

private:
  std::vector<std::string> getNames() const {
    if (op.op == "build_pyramid")
      return {"k", "k_len"};
    if (op.op == "route")
      return {"q", "k", "k_len", "q_start"};
    return {"q", "k", "v", "indices", "k_len", "q_start"};
  }

  llvm::Error readTypes() {
    if (op.dtype) {
      auto type = parseType("dtype", *op.dtype);
      if (!type)
        return type.takeError();
      problem.dtype = *type;
    }
    if (op.summaryDtype) {
      auto type = parseType("summary-dtype", *op.summaryDtype);
      if (!type)
        return type.takeError();
      problem.summaryDtype = *type;
    }
    for (const char *name : {"q", "k", "v"}) {
      auto it = options.inputs.find(name);
      if (it == options.inputs.end())
        continue;
      auto array = readInput(name, it->second);
      if (!array)
        return array.takeError();
      if (array->shape.size() != 4)
        return llvm::createStringError(
            "input '" + std::string(name) +
            "': expected 4 dimensions [B, H, T, D], but got shape " +
            printShape(array->shape));
      // Without --dtype the 16-bit types of the files are kept.
      if (!op.dtype &&
          (array->type == Array::Type::F16 || array->type == Array::Type::BF16))
        problem.dtype = array->type;
      given[name] = std::move(*array);
    }
    return llvm::Error::success();
  }

  /// Sets one dimension, from --shape or an input; they must agree.
  llvm::Error set(int64_t &dim, int64_t value, const std::string &what) {
    if (dim >= 0 && dim != value)
      return llvm::createStringError(
          "expected " + what + " to be " + std::to_string(dim) +
          " as everywhere else, but got " + std::to_string(value));
    dim = value;
    return llvm::Error::success();
  }

  llvm::Error readShape() {
    oracle::Problem &s = problem.shape;
    s.batch = s.heads = s.kvHeads = s.queryLength = s.keyLength = s.headDim =
        s.valueDim = -1;
    if (op.shape) {
      auto shape = parseShape("shape", *op.shape);
      if (!shape)
        return shape.takeError();
      if (shape->size() != 6)
        return llvm::createStringError(
            "expected --shape to be BxHqxHkvxTqxTkxD, but got '" + *op.shape +
            "'");
      s.batch = (*shape)[0], s.heads = (*shape)[1], s.kvHeads = (*shape)[2];
      s.queryLength = (*shape)[3], s.keyLength = (*shape)[4];
      s.headDim = (*shape)[5];
    }
    if (op.valueDim) {
      if (*op.valueDim < 0)
        return llvm::createStringError(
            "expected --value-dim to be a multiple of 8 "
            "in [8, 256], but got %lld",
            static_cast<long long>(*op.valueDim));
      s.valueDim = *op.valueDim;
    }
    struct {
      const char *name;
      int64_t &batch, &heads, &length, &dim;
    } uses[] = {{"q", s.batch, s.heads, s.queryLength, s.headDim},
                {"k", s.batch, s.kvHeads, s.keyLength, s.headDim},
                {"v", s.batch, s.kvHeads, s.keyLength, s.valueDim}};
    for (auto &use : uses) {
      auto it = given.find(use.name);
      if (it == given.end())
        continue;
      std::string name = std::string("of '") + use.name + "'";
      const std::vector<int64_t> &shape = it->second.shape;
      if (auto error = set(use.batch, shape[0], "the batch " + name))
        return error;
      if (auto error = set(use.heads, shape[1], "the heads " + name))
        return error;
      if (auto error = set(use.length, shape[2], "the length " + name))
        return error;
      if (auto error = set(use.dim, shape[3], "the head dimension " + name))
        return error;
    }
    // build_pyramid has no queries; attention's v defaults to k's width.
    if (op.op == "build_pyramid") {
      if (s.heads < 0)
        s.heads = s.kvHeads;
      if (s.queryLength < 0)
        s.queryLength = s.keyLength;
    }
    if (s.valueDim < 0)
      s.valueDim = s.headDim;
    for (int64_t dim :
         {s.batch, s.heads, s.kvHeads, s.queryLength, s.keyLength, s.headDim})
      if (dim < 0)
        return llvm::createStringError("expected --shape=BxHqxHkvxTqxTkxD, or "
                                       "inputs that say it, but got neither");
    for (int64_t dim : {s.headDim, s.valueDim})
      if (dim < 8 || dim > 256 || dim % 8 != 0)
        return llvm::createStringError(
            "expected head dimensions to be multiples "
            "of 8 in [8, 256], but got %lld",
            static_cast<long long>(dim));
    // One thread each at most; and lengths are made for each batch.
    if (s.batch > 1 << 20 || s.heads > 1 << 16)
      return llvm::createStringError(
          "expected at most 1048576 batches and 65536 "
          "heads, but got %lld and %lld",
          static_cast<long long>(s.batch), static_cast<long long>(s.heads));
    if (s.kvHeads < 1 || s.heads < 1 || s.heads % s.kvHeads != 0)
      return llvm::createStringError(
          "expected the number of query heads to be a positive multiple of the "
          "number of kv heads, but got %lld and %lld",
          static_cast<long long>(s.heads), static_cast<long long>(s.kvHeads));
    s.scale = op.scale.value_or(1 / std::sqrt(double(s.headDim)));
    // Functions take it as float32.
    float scale = static_cast<float>(s.scale);
    if (!std::isfinite(scale))
      return llvm::createStringError(
          "expected --scale to be a finite float32, but "
          "got %g",
          s.scale);
    s.scale = scale;
    return llvm::Error::success();
  }

  /// [B] numbers from an option or an input, or absent.
  llvm::Expected<std::optional<std::vector<int32_t>>>
  readPerBatch(const char *name, const char *option,
               const std::optional<std::string> &text, int64_t least,
               int64_t most) {
    std::vector<int32_t> values;
    auto it = options.inputs.find(name);
    if (it != options.inputs.end()) {
      auto array = readInput(name, it->second);
      if (!array)
        return array.takeError();
      auto ints = convertInput(name, *array, Array::Type::I32);
      if (!ints)
        return ints.takeError();
      values = toInts(*ints);
    } else if (text) {
      llvm::SmallVector<llvm::StringRef> parts;
      llvm::StringRef(*text).split(parts, ',');
      for (llvm::StringRef part : parts) {
        int32_t value;
        if (part.getAsInteger(10, value))
          return llvm::createStringError("expected --" + std::string(option) +
                                         " to be numbers with commas between "
                                         "them, but got '" +
                                         *text + "'");
        values.push_back(value);
      }
      // One number stands for all.
      if (values.size() == 1 && problem.shape.batch >= 0)
        values.resize(problem.shape.batch, values[0]);
    } else {
      return std::nullopt;
    }
    if (static_cast<int64_t>(values.size()) != problem.shape.batch)
      return llvm::createStringError(
          "expected %lld numbers in %s, one for each batch, but got %zu",
          static_cast<long long>(problem.shape.batch), name, values.size());
    for (int32_t value : values)
      if (value < least || value > most)
        return llvm::createStringError("expected %s to be in [%lld, %lld], but "
                                       "got %d",
                                       name, static_cast<long long>(least),
                                       static_cast<long long>(most), value);
    return values;
  }

  llvm::Error readLengths() {
    oracle::Problem &s = problem.shape;
    auto kLen = readPerBatch("k_len", "k-len", op.kLen, 0, s.keyLength);
    if (!kLen)
      return kLen.takeError();
    s.kLen = kLen->value_or(
        std::vector<int32_t>(s.batch, static_cast<int32_t>(s.keyLength)));
    // Positions and what is added to them must stay in int32.
    constexpr int64_t most = std::numeric_limits<int32_t>::max() / 2;
    auto qStart = readPerBatch("q_start", "q-start", op.qStart, -most, most);
    if (!qStart)
      return qStart.takeError();
    s.qStart = *qStart;
    return llvm::Error::success();
  }

  llvm::Error fill() {
    fillRandom(problem, options.seed, buffers);
    for (auto &[name, array] : given) {
      auto converted = convertInput(name, array, problem.dtype);
      if (!converted)
        return converted.takeError();
      (name == "q"   ? buffers.q
       : name == "k" ? buffers.k
                     : buffers.v) = std::move(*converted);
    }
    auto it = options.inputs.find("indices");
    if (it != options.inputs.end()) {
      auto array = readInput("indices", it->second);
      if (!array)
        return array.takeError();
      auto ints = convertInput("indices", *array, Array::Type::I32);
      if (!ints)
        return ints.takeError();
      const oracle::Problem &s = problem.shape;
      std::vector<int64_t> want = {s.batch, s.kvHeads, s.numQueryBlocks()};
      if (ints->shape.size() != 4 || ints->shape[3] < 1 ||
          !std::equal(want.begin(), want.end(), ints->shape.begin()))
        return llvm::createStringError(
            "input 'indices': expected shape [B, Hkv, NQ, K] = [" +
            std::to_string(want[0]) + ", " + std::to_string(want[1]) + ", " +
            std::to_string(want[2]) + ", K], but got " +
            printShape(ints->shape));
      buffers.indices = std::move(*ints);
    }
    allocateOutputs(problem, buffers);
    return llvm::Error::success();
  }

  mlir::MLIRContext &context;
  const Options &options;
  const OpOptions &op;
  OpProblem &problem;
  OpBuffers &buffers;
  std::map<std::string, Array> given;
};

/// One phase of the run: its name, its code, its reference and its check.
struct Phase {
  const char *name;
  llvm::Error (OpCode::*call)(const OpProblem &, OpBuffers &, Invocation &);
  void (*reference)(const OpProblem &, OpBuffers &);
  Verdict (*verify)(const OpProblem &, const OpBuffers &,
                    const VerifyOptions &);
  KernelFunctions function;
};
} // namespace

/// Says on a terminal what takes its time; silent otherwise.
static void progress(const llvm::Twine &what) {
  if (llvm::errs().is_displayed())
    llvm::errs() << "[pisa-runner] " << what << "\n";
}

namespace {
/// The phases' code on the target that the options name.
class Executor {
public:
  Executor(const Options &options, OpProblem &problem, OpBuffers &buffers)
      : options(options), problem(problem), buffers(buffers) {}

  llvm::Error compile(mlir::MLIRContext &context, unsigned functions);
  llvm::Error run(const Phase &phase);
  llvm::Expected<double> medianMs(const Phase &phase);
  /// Has the phase's outputs in the buffers.
  llvm::Error finish(const Phase &phase);

  /// How times were taken.
  std::string describeTimes() const;
  llvm::Error report(const OpOptions &op, llvm::json::Array timings) const;

private:
  llvm::Expected<llvm::SmallVector<ArgumentValue>>
  getCudaArguments(const Phase &phase);

  const Options &options;
  OpProblem &problem;
  OpBuffers &buffers;
  std::unique_ptr<CudaRun> cuda;
  // If it is not CUDA:
  std::optional<ThreadPool> pool;
  std::optional<Invocation> invocation;
  std::unique_ptr<OpCode> code; // null: the oracle
};
} // namespace

llvm::Error Executor::compile(mlir::MLIRContext &context, unsigned functions) {
  int64_t listWidth = buffers.indices.shape[3];
  if (options.target == "cuda") {
    auto opened = CudaRun::open();
    if (!opened)
      return opened.takeError();
    cuda = std::move(*opened);
    progress("compiling");
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        printModule(problem, listWidth, functions), &context);
    if (!module)
      return llvm::createStringError("the problem is not valid");
    return cuda->compile(*module, options.compile);
  }
  pool.emplace(options.threads);
  invocation.emplace(*pool, options.scratchLimit);
  if (options.target == "reference")
    return llvm::Error::success();
  progress("compiling");
  auto compiled =
      OpCode::compile(context, problem, listWidth, options.compile, functions);
  if (!compiled)
    return compiled.takeError();
  code = std::move(*compiled);
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<ArgumentValue>>
Executor::getCudaArguments(const Phase &phase) {
  llvm::SmallVector<ArgumentValue> arguments;
  for (const OpArgument &argument :
       getArguments(problem, buffers, phase.function)) {
    if (!argument.array) {
      arguments.push_back(ArgumentValue::scalar(float(problem.shape.scale)));
      continue;
    }
    auto value = cuda->getArgument(*argument.array);
    if (!value)
      return value.takeError();
    arguments.push_back(*value);
  }
  return arguments;
}

llvm::Error Executor::run(const Phase &phase) {
  if (cuda) {
    auto arguments = getCudaArguments(phase);
    if (!arguments)
      return arguments.takeError();
    return cuda->call(phase.name, *arguments);
  }
  if (code)
    return (*code.*phase.call)(problem, buffers, *invocation);
  phase.reference(problem, buffers);
  return llvm::Error::success();
}

llvm::Expected<double> Executor::medianMs(const Phase &phase) {
  if (!cuda)
    return runner::medianMs(options.timedRuns, [&] { return run(phase); });
  auto arguments = getCudaArguments(phase);
  if (!arguments)
    return arguments.takeError();
  return cuda->medianMs(options.timedRuns, phase.name, *arguments);
}

llvm::Error Executor::finish(const Phase &phase) {
  if (!cuda)
    return llvm::Error::success();
  for (const OpArgument &argument :
       getArguments(problem, buffers, phase.function))
    if (argument.isOutput)
      if (auto error = cuda->download(*argument.array))
        return error;
  return llvm::Error::success();
}

std::string Executor::describeTimes() const {
  std::string text = "median of " + std::to_string(options.timedRuns) + ", ";
  if (cuda)
    return text + "by CUDA events, " + cuda->describe();
  return text + std::to_string(pool->getNumThreads()) + " threads";
}

llvm::Error Executor::report(const OpOptions &op,
                             llvm::json::Array timings) const {
  llvm::json::Object where;
  if (cuda)
    where["device"] = cuda->describe();
  else
    where["threads"] = static_cast<int64_t>(pool->getNumThreads());
  return writeReport(options, op.op, std::move(timings),
                     cuda ? cuda->getPeakScratch()
                          : int64_t(invocation->getPeakScratch()),
                     std::move(where));
}

llvm::Expected<ExitCode> runner::runOp(mlir::MLIRContext &context,
                                       const Options &given,
                                       const OpOptions &op) {
  Options options = given;
  const Phase build = {"build_pyramid", &OpCode::buildPyramid, referencePyramid,
                       verifyPyramid, BuildPyramidFunction};
  const Phase route = {"route", &OpCode::route, referenceRoute, verifyRoute,
                       RouteFunction};
  const Phase attention = {"attention", &OpCode::attention, referenceAttention,
                           verifyAttention, AttentionFunction};
  bool givenIndices = options.inputs.count("indices");
  std::vector<Phase> phases;
  if (op.op == "build_pyramid")
    phases = {build};
  else if (op.op == "route")
    phases = {build, route};
  else if (op.op == "attention")
    phases = givenIndices ? std::vector<Phase>{attention}
                          : std::vector<Phase>{build, route, attention};
  else
    return llvm::createStringError(
        "expected --op to be attention, route or build_pyramid, but got '" +
        op.op + "'");

  OpProblem problem;
  OpBuffers buffers;
  if (auto error = Setup(context, options, op, problem, buffers).run())
    return error;

  if (options.target == "auto")
    options.target = chooseTarget(problem.dtype == Array::Type::F32
                                      ? "CUDA has no float32; see --dtype"
                                      : "");
  unsigned functions = 0;
  for (const Phase &phase : phases)
    functions |= phase.function;
  Executor executor(options, problem, buffers);
  if (auto error = executor.compile(context, functions))
    return error;

  ExitCode exit = Success;
  llvm::json::Array timings;
  for (const Phase &phase : phases) {
    // The first run touches memory and is not timed.
    progress(llvm::Twine("running ") + phase.name);
    if (auto error = executor.run(phase))
      return error;
    if (options.timedRuns > 0) {
      auto ms = executor.medianMs(phase);
      if (!ms)
        return ms.takeError();
      timings.push_back(llvm::json::Object{{"name", phase.name}, {"ms", *ms}});
      llvm::outs() << llvm::formatv("{0}: {1:f3} ms ({2})", phase.name, *ms,
                                    executor.describeTimes());
      if (llvm::StringRef(phase.name) == "attention") {
        double flops = 2.0 * countPairs(problem, buffers) *
                       (problem.shape.headDim + problem.shape.valueDim);
        llvm::outs() << llvm::formatv(", {0:f1} GFLOP/s", flops / *ms * 1e-6);
      }
      llvm::outs() << "\n";
    }
    if (auto error = executor.finish(phase))
      return error;
    if (options.verify) {
      progress(llvm::Twine("verifying ") + phase.name);
      VerifyOptions verify;
      verify.toleranceScale = options.toleranceScale;
      Verdict verdict = phase.verify(problem, buffers, verify);
      llvm::outs() << verdict.text << "\n";
      if (!verdict.good)
        exit = Mismatch;
    }
  }
  llvm::outs().flush();

  std::vector<std::pair<const char *, const Array *>> outputs;
  if (op.op == "build_pyramid") {
    outputs = {{"pyramid", &buffers.pyramid}};
    if (problem.usesAtoms()) {
      outputs.push_back({"atoms", &buffers.atoms});
      outputs.push_back({"outlier", &buffers.outlier});
    }
  } else {
    outputs = {{"indices", &buffers.indices}};
    if (op.op == "route") {
      outputs.push_back({"count", &buffers.count});
      if (problem.wantScores)
        outputs.push_back({"scores", &buffers.scores});
    } else {
      outputs.push_back({"out", &buffers.out});
      outputs.push_back({"lse", &buffers.lse});
    }
  }
  for (auto &[name, array] : outputs)
    if (auto error = writeOutput(options.outputDir, name, *array))
      return error;
  if (auto error = executor.report(op, std::move(timings)))
    return error;
  return exit;
}
