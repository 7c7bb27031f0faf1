//===- FileMode.cpp - Running a function of a .mlir file --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRun.h"

#include "pisa/Compiler/Cuda.h"
#include "pisa/Compiler/Function.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace pisa;
using namespace pisa::runner;
using npy::Array;

/// The array type of a tensor element type, if arrays have it.
static std::optional<Array::Type> arrayType(mlir::Type type) {
  if (type.isF32())
    return Array::Type::F32;
  if (type.isF16())
    return Array::Type::F16;
  if (type.isBF16())
    return Array::Type::BF16;
  if (type.isF64())
    return Array::Type::F64;
  if (type.isInteger(32))
    return Array::Type::I32;
  if (type.isInteger(64))
    return Array::Type::I64;
  return std::nullopt;
}

static std::string printType(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  type.print(os);
  return text;
}

static llvm::Expected<mlir::func::FuncOp> findFunction(mlir::ModuleOp module,
                                                       llvm::StringRef entry) {
  std::vector<std::string> names;
  mlir::func::FuncOp found;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (func.isExternal())
      continue;
    names.push_back(func.getName().str());
    if (entry.empty() || func.getName() == entry)
      found = func;
  }
  if (names.empty())
    return llvm::createStringError(
        "expected a function in the file, but got none");
  if (!found || (entry.empty() && names.size() > 1))
    return llvm::createStringError(
        "expected --entry to be one of " + llvm::join(names, ", ") +
        (entry.empty() ? ", but got none" : ", but got '" + entry.str() + "'"));
  return found;
}

/// The value of one argument: a number, or an array made from a file, a number
/// or the seed.
static llvm::Expected<CpuArgument>
getArgument(const Options &options, unsigned i, mlir::Type type, bool isOutput,
            std::vector<std::unique_ptr<Array>> &arrays) {
  std::string name = "arg" + std::to_string(i);
  auto it = options.inputs.find(name);
  std::string value = it == options.inputs.end() ? "" : it->second;

  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor) {
    CpuArgument argument;
    double number;
    if (value.empty() || llvm::StringRef(value).getAsDouble(number))
      return llvm::createStringError("argument " + name + " (" +
                                     printType(type) +
                                     "): expected a number, but got '" + value +
                                     "'; give --inputs=" + name + "=...");
    if (type.isF32())
      return CpuArgument::scalar(static_cast<float>(number));
    if ((type.isInteger(32) || type.isIndex()) &&
        !(std::abs(number) <= 0x7fffffff))
      return llvm::createStringError(
          "argument " + name +
          ": expected a number that fits in int32, but "
          "got '" +
          value + "'");
    if (type.isInteger(32)) {
      argument.kind = CpuArgument::Kind::I32;
      argument.i32 = static_cast<int32_t>(number);
      return argument;
    }
    if (type.isIndex()) {
      argument.kind = CpuArgument::Kind::Index;
      argument.index = static_cast<int64_t>(number);
      return argument;
    }
    return llvm::createStringError(
        "argument " + name +
        ": expected f32, i32, index or a ranked tensor, "
        "but got " +
        printType(type));
  }
  std::optional<Array::Type> element = arrayType(tensor.getElementType());
  if (!element)
    return llvm::createStringError(
        "argument " + name +
        ": expected elements of f32, f16, bf16, f64, i32 "
        "or i64, but got " +
        printType(type));
  auto array = std::make_unique<Array>();
  double number;
  if (!value.empty() && llvm::StringRef(value).getAsDouble(number)) {
    auto read = readInput(name, value);
    if (!read)
      return read.takeError();
    auto converted = convertInput(name, *read, *element);
    if (!converted)
      return converted.takeError();
    *array = std::move(*converted);
    bool fits = int64_t(array->shape.size()) == tensor.getRank();
    for (auto [have, want] : llvm::zip(array->shape, tensor.getShape()))
      fits &= mlir::ShapedType::isDynamic(want) || have == want;
    if (!fits)
      return llvm::createStringError("argument " + name +
                                     ": expected shape of " + printType(type) +
                                     ", but got " + printShape(array->shape));
  } else {
    if (!tensor.hasStaticShape())
      return llvm::createStringError(
          "argument " + name + " (" + printType(type) +
          "): expected a file for its dynamic shape; "
          "give --inputs=" +
          name + "=file.npy");
    std::vector<int64_t> shape = tensor.getShape().vec();
    array->type = *element;
    array->shape = shape;
    double bytes = sizeof(double) + npy::elementSize(*element);
    for (int64_t size : shape)
      bytes *= size;
    if (bytes > double(getUsableMemory()))
      return llvm::createStringError(
          "argument " + name + " (" + printType(type) +
          "): expected arrays that fit in the " +
          std::to_string(getUsableMemory() >> 20) + " MiB of memory");
    if (!value.empty()) {
      std::vector<double> values(array->numElements(), number);
      if (tensor.getElementType().isInteger(32)) {
        if (!(std::abs(number) <= 0x7fffffff))
          return llvm::createStringError(
              "argument " + name +
              ": expected a number that fits in int32, "
              "but got '" +
              value + "'");
        array->data.resize(values.size() * sizeof(int32_t));
        for (size_t e = 0; e < values.size(); ++e) {
          int32_t item = static_cast<int32_t>(number);
          std::memcpy(array->data.data() + e * sizeof(item), &item,
                      sizeof(item));
        }
      } else {
        *array = npy::fromDoubles(values, shape, *element);
      }
    } else if (isOutput) {
      array->data.assign(array->numElements() * npy::elementSize(*element),
                         0xff);
    } else if (*element == Array::Type::I32 || *element == Array::Type::I64) {
      // Random lengths or indices would mean nothing.
      return llvm::createStringError("argument " + name + " (" +
                                     printType(type) +
                                     "): expected a file or a number; give "
                                     "--inputs=" +
                                     name + "=...");
    } else {
      *array = randomNormal(options.seed + i, shape, *element);
    }
  }
  CpuArgument argument = CpuArgument::array(array->data.data(), array->shape);
  arrays[i] = std::move(array);
  return argument;
}

/// What the runs of a function leave to be said.
struct FileRun {
  std::optional<double> ms;
  std::string timing; // how `ms` was taken
  int64_t scratchBytes = 0;
  llvm::json::Object where;
};

static llvm::Expected<FileRun> runOnCpu(const Options &options,
                                        mlir::ModuleOp module,
                                        llvm::StringRef name,
                                        llvm::ArrayRef<CpuArgument> arguments) {
  auto compiled = compileForCpu(module, options.compile);
  if (!compiled)
    return compiled.takeError();
  ThreadPool pool(options.threads);
  Invocation invocation(pool, options.scratchLimit);
  auto run = [&] { return (*compiled)->call(name, arguments, invocation); };
  if (auto error = run())
    return error;
  FileRun result;
  if (options.timedRuns > 0) {
    auto ms = medianMs(options.timedRuns, run);
    if (!ms)
      return ms.takeError();
    result.ms = *ms;
    result.timing = std::to_string(pool.getNumThreads()) + " threads";
  }
  result.scratchBytes = invocation.getPeakScratch();
  result.where["threads"] = static_cast<int64_t>(pool.getNumThreads());
  return result;
}

static llvm::Expected<FileRun>
runOnCuda(const Options &options, mlir::ModuleOp module, llvm::StringRef name,
          llvm::ArrayRef<CpuArgument> arguments,
          llvm::ArrayRef<std::unique_ptr<Array>> arrays,
          llvm::ArrayRef<unsigned> outputs) {
  auto cuda = CudaRun::open();
  if (!cuda)
    return cuda.takeError();
  if (auto error = (*cuda)->compile(module, options.compile))
    return error;
  llvm::SmallVector<ArgumentValue> values;
  for (auto [argument, array] : llvm::zip_equal(arguments, arrays)) {
    if (!array) {
      values.push_back(toArgumentValue(argument));
      continue;
    }
    auto value = (*cuda)->getArgument(*array);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  if (auto error = (*cuda)->call(name, values))
    return error;
  FileRun result;
  if (options.timedRuns > 0) {
    auto ms = (*cuda)->medianMs(options.timedRuns, name, values);
    if (!ms)
      return ms.takeError();
    result.ms = *ms;
    result.timing = "by CUDA events, " + (*cuda)->describe();
  }
  for (unsigned argument : outputs)
    if (auto error = (*cuda)->download(*arrays[argument]))
      return error;
  result.scratchBytes = (*cuda)->getPeakScratch();
  result.where["device"] = (*cuda)->describe();
  return result;
}

llvm::Expected<ExitCode> runner::runFile(mlir::MLIRContext &context,
                                         const Options &given,
                                         const std::string &path) {
  Options options = given;
  if (options.target == "reference")
    return llvm::createStringError(
        "expected --target to be cpu, cuda or auto for a .mlir file, but got "
        "'reference'");
  if (options.verify)
    return llvm::createStringError(
        "expected --op with --verify: the oracle does not "
        "run .mlir files");
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module)
    return llvm::createStringError("cannot parse '" + path + "'");
  auto func = findFunction(*module, options.entry);
  if (!func)
    return func.takeError();
  std::string name = func->getName().str();

  // Which arguments are written, before bufferization forgets the results.
  llvm::SmallVector<unsigned> outputs;
  llvm::DenseSet<unsigned> overwritten; // returned by an op, not passed through
  auto *terminator = func->getBody().back().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    std::optional<unsigned> argument;
    if (llvm::isa<mlir::RankedTensorType>(value.getType()))
      argument = getOutputArgument(value);
    if (!argument)
      return llvm::createStringError(
          "result %zu of @%s: expected the destination of an op, made from an "
          "argument, but got a new value",
          i, name.c_str());
    outputs.push_back(*argument);
    if (!llvm::isa<mlir::BlockArgument>(value))
      overwritten.insert(*argument);
  }
  for (const auto &[input, value] : options.inputs) {
    unsigned i;
    if (llvm::StringRef(input).consume_front("arg") &&
        !llvm::StringRef(input).drop_front(3).getAsInteger(10, i) &&
        i < func->getNumArguments() && input == "arg" + std::to_string(i))
      continue;
    return llvm::createStringError(
        func->getNumArguments() == 0
            ? "expected no inputs of @" + name + ", but got '" + input + "'"
            : "expected inputs of @" + name + " to be arg0 to arg" +
                  std::to_string(func->getNumArguments() - 1) + ", but got '" +
                  input + "'");
  }
  std::vector<std::unique_ptr<Array>> arrays(func->getNumArguments());
  llvm::SmallVector<CpuArgument> arguments;
  for (auto [i, type] : llvm::enumerate(func->getArgumentTypes())) {
    auto argument =
        getArgument(options, i, type, overwritten.contains(i), arrays);
    if (!argument)
      return argument.takeError();
    arguments.push_back(*argument);
  }

  llvm::SmallVector<llvm::ArrayRef<int64_t>> sizes;
  for (const CpuArgument &argument : arguments)
    sizes.push_back(argument.sizes);
  if (auto error = checkShapes(*func, sizes))
    return error;
  if (options.target == "auto")
    options.target = chooseTarget("");
  auto run = options.target == "cuda"
                 ? runOnCuda(options, *module, name, arguments, arrays, outputs)
                 : runOnCpu(options, *module, name, arguments);
  if (!run)
    return run.takeError();
  llvm::json::Array timings;
  if (run->ms) {
    timings.push_back(llvm::json::Object{{"name", name}, {"ms", *run->ms}});
    llvm::outs() << llvm::formatv("{0}: {1:f3} ms (median of {2}, {3})\n", name,
                                  *run->ms, options.timedRuns, run->timing);
  }
  for (auto [i, argument] : llvm::enumerate(outputs))
    if (auto error = writeOutput(
            options.outputDir, "result" + std::to_string(i), *arrays[argument]))
      return error;
  if (auto error = writeReport(options, name, std::move(timings),
                               run->scratchBytes, std::move(run->where)))
    return error;
  return Success;
}
