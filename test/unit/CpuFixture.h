//===- CpuFixture.h - Compiling and running problems in tests ---*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TEST_UNIT_CPUFIXTURE_H
#define PISA_TEST_UNIT_CPUFIXTURE_H

#include "pisa/Harness/OpProblem.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

namespace pisa::test {

using npy::Array;
using Type = npy::Array::Type;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline mlir::MLIRContext &getContext() {
  static mlir::MLIRContext context(
      [] {
        mlir::DialectRegistry registry;
        registerCompiler(registry);
        return registry;
      }(),
      mlir::MLIRContext::Threading::DISABLED);
  return context;
}

inline ThreadPool &getPool() {
  static ThreadPool pool(2);
  return pool;
}

/// The code of one function of a problem. Compiling costs about a second and
/// serves all lengths, so each module is compiled once; null, and a failed
/// test, if it cannot be.
inline OpCode *getCode(const OpProblem &problem, int64_t listWidth,
                       const CompileOptions &options,
                       KernelFunctions function) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  // Never destroyed: an engine still uses LLVM's static data when it goes.
  static auto &cache = *new std::map<std::string, std::unique_ptr<OpCode>>();
  std::string key = options.cpu + (options.checkInputs ? " checked\n" : "\n") +
                    printModule(problem, listWidth, function);
  auto it = cache.find(key);
  if (it == cache.end()) {
    auto code =
        OpCode::compile(getContext(), problem, listWidth, options, function);
    if (!code) {
      ADD_FAILURE() << llvm::toString(code.takeError()) << "\n" << key;
      return nullptr;
    }
    it = cache.emplace(key, std::move(*code)).first;
  }
  return it->second.get();
}

/// "" for success.
inline std::string takeText(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "";
}

inline void expectGood(const Verdict &verdict) {
  EXPECT_TRUE(verdict.good) << verdict.text;
}

/// A problem on full caches with the default parameters, but for K = 4: that
/// prunes from 257 keys on.
inline OpProblem makeProblem(Type dtype, int64_t heads, int64_t kvHeads,
                             int64_t queries, int64_t keys,
                             int64_t headDim = 16) {
  OpProblem problem;
  problem.dtype = dtype;
  oracle::Problem &s = problem.shape;
  s.batch = 1;
  s.heads = heads;
  s.kvHeads = kvHeads;
  s.queryLength = queries;
  s.keyLength = keys;
  s.headDim = s.valueDim = headDim;
  s.scale = 1 / std::sqrt(double(headDim));
  s.kLen = {int32_t(keys)};
  s.params.topk = 4;
  return problem;
}

/// A problem, its data, and what compiled code made of it.
struct CpuCase {
  OpProblem problem;
  OpBuffers buffers;
  CompileOptions options;

  CpuCase() = default;
  CpuCase(OpProblem problem, uint64_t seed) : problem(std::move(problem)) {
    fillRandom(this->problem, seed, buffers);
  }

  oracle::Problem &shape() { return problem.shape; }

  /// Poison in all outputs, the lists of blocks among them.
  void reset() {
    EXPECT_EQ(oracle::validate(problem.shape), std::nullopt);
    buffers.indices = {};
    allocateOutputs(problem, buffers);
  }

  // The functions, each with the text of its error.
  std::string tryBuild(Invocation &invocation) {
    OpCode *code = getCode(BuildPyramidFunction, problem.shape.params.topk);
    return code ? takeText(code->buildPyramid(problem, buffers, invocation))
                : "not compiled";
  }
  std::string tryRoute(Invocation &invocation) {
    OpCode *code = getCode(RouteFunction, problem.shape.params.topk);
    return code ? takeText(code->route(problem, buffers, invocation))
                : "not compiled";
  }
  std::string tryAttend(Invocation &invocation) {
    OpCode *code = getCode(AttentionFunction, buffers.indices.shape.back());
    return code ? takeText(code->attention(problem, buffers, invocation))
                : "not compiled";
  }
  /// All of them, up to the first error.
  std::string tryRun(Invocation &invocation) {
    reset();
    std::string text = tryBuild(invocation);
    if (text.empty())
      text = tryRoute(invocation);
    return text.empty() ? tryAttend(invocation) : text;
  }

  void route() {
    reset();
    Invocation invocation(getPool());
    EXPECT_EQ(tryBuild(invocation), "");
    EXPECT_EQ(tryRoute(invocation), "");
  }
  /// Attends to the lists that are there.
  void attend() {
    EXPECT_EQ(oracle::validate(problem.shape), std::nullopt);
    allocateOutputs(problem, buffers); // keeps the lists
    Invocation invocation(getPool());
    EXPECT_EQ(tryAttend(invocation), "");
  }
  void run(ThreadPool &pool = getPool()) {
    Invocation invocation(pool);
    EXPECT_EQ(tryRun(invocation), "");
  }

  /// The list of (batch, kv head, query block) without its end of -1.
  std::vector<int32_t> list(int64_t row, int64_t kvHead = 0,
                            int64_t batch = 0) const {
    const std::vector<int64_t> &shape = buffers.indices.shape;
    std::vector<int32_t> entries(shape[3]);
    int64_t first = ((batch * shape[1] + kvHead) * shape[2] + row) * shape[3];
    std::memcpy(entries.data(),
                buffers.indices.data.data() + first * sizeof(int32_t),
                entries.size() * sizeof(int32_t));
    while (!entries.empty() && entries.back() == -1)
      entries.pop_back();
    return entries;
  }

private:
  OpCode *getCode(KernelFunctions function, int64_t listWidth) const {
    return test::getCode(problem, listWidth, options, function);
  }
};

/// Replaces the elements of a [B, H, T, D] array.
inline void transform(Array &array,
                      llvm::function_ref<double(int64_t b, int64_t h, int64_t t,
                                                int64_t d, double old)>
                          value) {
  std::vector<double> values = npy::toDoubles(array);
  size_t i = 0;
  for (int64_t b = 0; b < array.shape[0]; ++b)
    for (int64_t h = 0; h < array.shape[1]; ++h)
      for (int64_t t = 0; t < array.shape[2]; ++t)
        for (int64_t d = 0; d < array.shape[3]; ++d, ++i)
          values[i] = value(b, h, t, d, values[i]);
  array = npy::fromDoubles(values, array.shape, array.type);
}

/// The bytes of row t of a [B, H, T, ...] array.
inline llvm::ArrayRef<uint8_t> rowBytes(const Array &array, int64_t b,
                                        int64_t h, int64_t t) {
  int64_t bytes = npy::elementSize(array.type);
  for (size_t i = 3; i < array.shape.size(); ++i)
    bytes *= array.shape[i];
  int64_t row = (b * array.shape[1] + h) * array.shape[2] + t;
  return llvm::ArrayRef(array.data).slice(row * bytes, bytes);
}

/// A part of a [B, H, T, ...] array.
struct Rows {
  const Array &array;
  int64_t batch = 0;
  int64_t first = 0;
};

/// Bit equality of `count` rows of each head; reports the first difference.
inline void expectSameRows(const char *what, Rows got, Rows want,
                           int64_t count) {
  ASSERT_EQ(got.array.type, want.array.type) << what;
  ASSERT_EQ(got.array.shape[1], want.array.shape[1]) << what;
  ASSERT_LE(got.first + count, got.array.shape[2]) << what;
  ASSERT_LE(want.first + count, want.array.shape[2]) << what;
  for (int64_t h = 0; h < got.array.shape[1]; ++h)
    for (int64_t t = 0; t < count; ++t)
      ASSERT_EQ(rowBytes(got.array, got.batch, h, got.first + t),
                rowBytes(want.array, want.batch, h, want.first + t))
          << what << " of head " << h << ", row " << t << " of " << count;
}

/// Bit equality of whole arrays.
inline void expectSameBits(const char *what, const Array &got,
                           const Array &want) {
  ASSERT_EQ(got.shape, want.shape) << what;
  ASSERT_EQ(got.data.size(), want.data.size()) << what;
  if (std::memcmp(got.data.data(), want.data.data(), got.data.size()) == 0)
    return;
  for (size_t i = 0; i < got.data.size(); ++i)
    ASSERT_EQ(int(got.data[i]), int(want.data[i]))
        << what << ", element " << i / npy::elementSize(got.type);
}

/// Bit equality of all that routing and attention return.
inline void expectSameOutputs(const OpBuffers &got, const OpBuffers &want) {
  expectSameBits("indices", got.indices, want.indices);
  expectSameBits("count", got.count, want.count);
  expectSameBits("out", got.out, want.out);
  expectSameBits("lse", got.lse, want.lse);
}

/// No NaN and no infinity.
inline void expectFinite(const char *what, const Array &array) {
  std::vector<double> values = npy::toDoubles(array);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(std::isfinite(values[i])) << what << ", element " << i;
}

} // namespace pisa::test

#endif // PISA_TEST_UNIT_CPUFIXTURE_H
