//===- OpProblem.cpp - One problem's module, buffers and calls --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Harness/OpProblem.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <sys/resource.h>
#include <unistd.h>

using namespace pisa;
using npy::Array;

int64_t OpProblem::numNodes() const {
  return oracle::PyramidLayout(shape.keyLength, shape.params.blockSize,
                               shape.params.fanout)
      .numNodes;
}
int64_t OpProblem::numLevels() const {
  return oracle::PyramidLayout(shape.keyLength, shape.params.blockSize,
                               shape.params.fanout)
      .numLevels();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// An array whose bytes are all ones: NaN in every float type, -1 in integers.
static Array poisoned(Array::Type type, std::vector<int64_t> shape) {
  Array array;
  array.type = type;
  array.shape = std::move(shape);
  array.data.assign(array.numElements() * npy::elementSize(type), 0xff);
  return array;
}

namespace {
/// splitmix64, and normal numbers from it by Box-Muller: the standard library's
/// distributions differ between implementations.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  double normal() {
    double u = (next() + 1) * 0x1p-53, w = next() * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * w);
  }

private:
  double next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11);
  }
  uint64_t state;
};
} // namespace

Array pisa::randomNormal(uint64_t seed, std::vector<int64_t> shape,
                         Array::Type type) {
  Random random(seed);
  Array sizes;
  sizes.shape = shape;
  std::vector<double> values(sizes.numElements());
  for (double &value : values)
    value = random.normal();
  return npy::fromDoubles(values, shape, type);
}

/// NaN in the rows of [B, H, T, D] at and past each length.
static void poisonSlack(Array &array, const std::vector<int32_t> &lengths) {
  int64_t heads = array.shape[1], rows = array.shape[2];
  int64_t bytes = array.shape[3] * npy::elementSize(array.type);
  for (int64_t b = 0; b < array.shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = lengths[b]; t < rows; ++t)
        std::fill_n(array.data.begin() + ((b * heads + h) * rows + t) * bytes,
                    bytes, 0xff);
}

static Array intArray(const std::vector<int32_t> &values) {
  Array array;
  array.type = Array::Type::I32;
  array.shape = {static_cast<int64_t>(values.size())};
  const auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
  array.data.assign(bytes, bytes + values.size() * sizeof(int32_t));
  return array;
}

void pisa::fillRandom(const OpProblem &problem, uint64_t seed,
                      OpBuffers &buffers) {
  const oracle::Problem &s = problem.shape;
  buffers.q = randomNormal(
      3 * seed, {s.batch, s.heads, s.queryLength, s.headDim}, problem.dtype);
  buffers.k =
      randomNormal(3 * seed + 1, {s.batch, s.kvHeads, s.keyLength, s.headDim},
                   problem.dtype);
  buffers.v =
      randomNormal(3 * seed + 2, {s.batch, s.kvHeads, s.keyLength, s.valueDim},
                   problem.dtype);
  poisonSlack(buffers.k, s.kLen);
  poisonSlack(buffers.v, s.kLen);
}

void pisa::allocateOutputs(const OpProblem &problem, OpBuffers &buffers) {
  const oracle::Problem &s = problem.shape;
  int64_t leaves = s.numLeaves(), queryBlocks = s.numQueryBlocks();
  Array::Type summary = problem.getSummaryType();
  buffers.kLen = intArray(s.kLen);
  if (s.qStart)
    buffers.qStart = intArray(*s.qStart);
  buffers.pyramid =
      poisoned(summary, {s.batch, s.kvHeads, problem.numNodes(), s.headDim});
  buffers.openSums = poisoned(
      Array::Type::F32, {s.batch, s.kvHeads, problem.numLevels(), s.headDim});
  buffers.atoms = poisoned(
      summary, {s.batch, s.kvHeads, leaves, s.params.leafAtoms, s.headDim});
  buffers.outlier = poisoned(Array::Type::I32, {s.batch, s.kvHeads, leaves});
  if (buffers.indices.data.empty())
    buffers.indices = poisoned(
        Array::Type::I32, {s.batch, s.kvHeads, queryBlocks, s.params.topk});
  buffers.count = poisoned(Array::Type::I32, {s.batch, s.kvHeads, queryBlocks});
  buffers.scores = poisoned(Array::Type::F32,
                            {s.batch, s.kvHeads, queryBlocks, s.params.topk});
  buffers.out =
      poisoned(problem.dtype, {s.batch, s.heads, s.queryLength, s.valueDim});
  buffers.lse = poisoned(Array::Type::F32, {s.batch, s.heads, s.queryLength});
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

static ElementType toElementType(Array::Type type) {
  switch (type) {
  case Array::Type::F16:
    return ElementType::F16;
  case Array::Type::BF16:
    return ElementType::BF16;
  default:
    return ElementType::F32;
  }
}

std::string pisa::printModule(const OpProblem &problem, int64_t listWidth,
                              unsigned functions) {
  const oracle::Problem &s = problem.shape;
  const oracle::Params &p = s.params;
  KernelSpec spec;
  spec.functions = functions;
  spec.params = {p.blockSize,   p.fanout,    p.topk,       p.beam,
                 p.rerank,      p.leafAtoms, p.queryBlock, p.sinkBlocks,
                 p.localBlocks, p.causal,    std::nullopt};
  if (problem.summaryDtype)
    spec.params.summaryDtype = toElementType(*problem.summaryDtype);
  spec.dtype = toElementType(problem.dtype);
  spec.heads = s.heads;
  spec.kvHeads = s.kvHeads;
  spec.headDim = s.headDim;
  spec.valueDim = s.valueDim;
  spec.listWidth = listWidth;
  spec.hasQStart = s.qStart.has_value();
  spec.wantOpenSums = problem.wantOpenSums;
  spec.wantCount = spec.wantLse = true;
  spec.wantScores = problem.wantScores;
  return printModule(spec);
}

uint64_t pisa::getUsableMemory() {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  return bytes;
}

std::optional<std::string> pisa::checkProblem(mlir::MLIRContext &context,
                                              const OpProblem &problem) {
  // The dialect first: it bounds what the rest computes with. Only the message
  // is kept; the text it points into is ours, not the user's.
  std::string message;
  {
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diag) {
                                            if (message.empty())
                                              message = diag.str();
                                            return mlir::success();
                                          });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        printModule(problem, problem.shape.params.topk), &context);
    if (!module)
      return message;
  }
  if (std::optional<std::string> error = oracle::validate(problem.shape))
    return error;

  // Buffers, and the float64 copies that random numbers and the oracle need. In
  // floating point: the product of hostile sizes overflows every integer.
  const oracle::Problem &s = problem.shape;
  double batch = s.batch, leaves = s.numLeaves();
  double perQuery = double(s.heads) * (s.headDim + s.valueDim + 1) +
                    2.0 * s.kvHeads * s.params.topk;
  double perKey = double(s.kvHeads) * (s.headDim + s.valueDim);
  double perLeaf = double(s.kvHeads) * s.headDim *
                   (2 + (problem.usesAtoms() ? s.params.leafAtoms : 0));
  double elements = batch * (perQuery * s.queryLength + perKey * s.keyLength +
                             perLeaf * leaves + 2);
  double needed = elements * (sizeof(float) + sizeof(double));
  if (needed > double(getUsableMemory()))
    return llvm::formatv(
               "expected buffers that fit in the {0} MiB of memory, but "
               "the shape needs about {1} MiB",
               getUsableMemory() >> 20,
               static_cast<uint64_t>(needed / (1 << 20)))
        .str();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<OpCode>>
OpCode::compile(mlir::MLIRContext &context, const OpProblem &problem,
                int64_t listWidth, const CompileOptions &options,
                unsigned functions) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      printModule(problem, listWidth, functions), &context);
  if (!module)
    return llvm::createStringError("the problem is not valid");
  auto compiled = compileForCpu(*module, options);
  if (!compiled)
    return compiled.takeError();
  std::unique_ptr<OpCode> code(new OpCode());
  code->module = std::move(*compiled);
  return code;
}

llvm::SmallVector<OpArgument> pisa::getArguments(const OpProblem &problem,
                                                 OpBuffers &b,
                                                 KernelFunctions function) {
  llvm::SmallVector<OpArgument> arguments;
  auto add = [&](std::initializer_list<Array *> arrays, bool isOutput = false) {
    for (Array *array : arrays)
      arguments.push_back({array, isOutput});
  };
  auto addPositions = [&] {
    add({&b.kLen});
    if (problem.shape.qStart)
      add({&b.qStart});
    add({nullptr});
  };
  switch (function) {
  case BuildPyramidFunction:
    add({&b.k, &b.kLen});
    add({&b.pyramid}, /*isOutput=*/true);
    if (problem.wantOpenSums)
      add({&b.openSums}, /*isOutput=*/true);
    if (problem.usesAtoms())
      add({&b.atoms, &b.outlier}, /*isOutput=*/true);
    break;
  case RouteFunction:
    add({&b.q, &b.k, &b.pyramid});
    if (problem.usesAtoms())
      add({&b.atoms, &b.outlier});
    addPositions();
    add({&b.indices, &b.count}, /*isOutput=*/true);
    if (problem.wantScores)
      add({&b.scores}, /*isOutput=*/true);
    break;
  case AttentionFunction:
    add({&b.q, &b.k, &b.v, &b.indices});
    addPositions();
    add({&b.out, &b.lse}, /*isOutput=*/true);
    break;
  case AllFunctions:
    break;
  }
  return arguments;
}

llvm::Error OpCode::call(const char *name, KernelFunctions function,
                         const OpProblem &problem, OpBuffers &buffers,
                         Invocation &invocation) {
  llvm::SmallVector<CpuArgument> arguments;
  for (const OpArgument &argument : getArguments(problem, buffers, function))
    arguments.push_back(argument.array
                            ? CpuArgument::array(argument.array->data.data(),
                                                 argument.array->shape)
                            : CpuArgument::scalar(problem.shape.scale));
  return module->call(name, arguments, invocation);
}

llvm::Error OpCode::buildPyramid(const OpProblem &problem, OpBuffers &buffers,
                                 Invocation &invocation) {
  return call("build_pyramid", BuildPyramidFunction, problem, buffers,
              invocation);
}

llvm::Error OpCode::route(const OpProblem &problem, OpBuffers &buffers,
                          Invocation &invocation) {
  return call("route", RouteFunction, problem, buffers, invocation);
}

llvm::Error OpCode::attention(const OpProblem &problem, OpBuffers &buffers,
                              Invocation &invocation) {
  return call("attention", AttentionFunction, problem, buffers, invocation);
}
