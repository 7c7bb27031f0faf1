//===- RuntimeTest.cpp - Threads, scratch and targets -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuFixture.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <atomic>
#include <thread>

using namespace pisa;
using namespace pisa::test;

namespace {

//===----------------------------------------------------------------------===//
// ThreadPool
//===----------------------------------------------------------------------===//

/// Runs a loop and checks that its ranges are a partition of [0, count).
void expectPartition(ThreadPool &pool, int64_t count) {
  std::vector<std::atomic<int>> visits(count);
  std::atomic<bool> outside{false}, empty{false};
  pool.parallelFor(count, [&](int64_t begin, int64_t end) {
    if (begin >= end)
      empty = true;
    for (int64_t i = begin; i < end; ++i) {
      if (i < 0 || i >= count)
        outside = true;
      else
        ++visits[i];
    }
  });
  EXPECT_FALSE(outside);
  EXPECT_FALSE(empty);
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(visits[i], 1) << "iteration " << i << " of " << count;
}

TEST(ThreadPool, VisitsEachIterationOnce) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.getNumThreads(), threads);
    for (int64_t count : {1, 2, 3, 7, 8, 9, 1000})
      expectPartition(pool, count);
  }
}

TEST(ThreadPool, ZeroMeansOneThreadForEachCore) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.getNumThreads(),
            std::max(1u, std::thread::hardware_concurrency()));
  expectPartition(pool, 100);
}

TEST(ThreadPool, NoIterations) {
  for (unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    int calls = 0;
    for (int64_t count :
         {int64_t(0), int64_t(-1), std::numeric_limits<int64_t>::min()})
      pool.parallelFor(count, [&](int64_t, int64_t) { ++calls; });
    EXPECT_EQ(calls, 0);
  }
}

TEST(ThreadPool, OneIterationRunsOnTheCaller) {
  ThreadPool pool(3);
  std::thread::id id;
  pool.parallelFor(1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1);
    id = std::this_thread::get_id();
  });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPool, UsesItsThreadsAtOnce) {
  // Each iteration waits for all others: one thread alone would never return.
  ThreadPool pool(3);
  std::atomic<int> arrived{0};
  pool.parallelFor(3, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3)
      std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, NestedLoopsStayOnTheirThread) {
  for (unsigned threads : {1u, 4u}) {
    ThreadPool pool(threads);
    std::vector<std::atomic<int>> visits(20 * 30 * 5);
    std::atomic<bool> moved{false};
    pool.parallelFor(20, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::thread::id outer = std::this_thread::get_id();
        pool.parallelFor(30, [&, i](int64_t begin, int64_t end) {
          for (int64_t j = begin; j < end; ++j)
            pool.parallelFor(5, [&, j](int64_t begin, int64_t end) {
              if (std::this_thread::get_id() != outer)
                moved = true;
              for (int64_t l = begin; l < end; ++l)
                ++visits[(i * 30 + j) * 5 + l];
            });
        });
      }
    });
    EXPECT_FALSE(moved);
    for (auto &count : visits)
      ASSERT_EQ(count, 1);
    expectPartition(pool, 100);
  }
}

TEST(ThreadPool, NestedLoopInALoopOfOne) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  pool.parallelFor(1, [&](int64_t, int64_t) {
    pool.parallelFor(100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sum += i;
    });
  });
  EXPECT_EQ(sum, 4950);
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int run = 0; run < 200; ++run) {
        int64_t count = 1 + (run * 7 + caller) % 50;
        std::atomic<int64_t> sum{0};
        pool.parallelFor(count, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            sum += i + 1;
        });
        if (sum != count * (count + 1) / 2)
          ++wrong;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RangesAscendOnAThread) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::map<std::thread::id, int64_t> last;
  bool ascending = true;
  pool.parallelFor(1000, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    auto [it, isNew] = last.try_emplace(std::this_thread::get_id(), -1);
    ascending &= begin > it->second;
    it->second = end - 1;
  });
  EXPECT_TRUE(ascending);
}

//===----------------------------------------------------------------------===//
// Invocation
//===----------------------------------------------------------------------===//

/// Calls of compiled code that need scratch.
class InvocationTest : public testing::Test {
protected:
  InvocationTest() : c(makeProblem(Type::F32, 2, 1, 300, 700), 1) {
    c.run();
    want = c.buffers;
  }

  CpuCase c;
  OpBuffers want;
};

TEST_F(InvocationTest, CountsItsScratch) {
  ThreadPool pool(1);
  Invocation invocation(pool);
  EXPECT_EQ(invocation.getPeakScratch(), 0u);
  EXPECT_EQ(c.tryRun(invocation), "");
  size_t peak = invocation.getPeakScratch();
  EXPECT_GT(peak, 0u);
  // What is freed counts no more: further runs need no more.
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(c.tryRun(invocation), "");
    EXPECT_EQ(invocation.getPeakScratch(), peak);
    expectSameOutputs(c.buffers, want);
  }
}

TEST_F(InvocationTest, KeepsToItsLimit) {
  ThreadPool pool(1);
  Invocation free(pool);
  EXPECT_EQ(c.tryRun(free), "");
  size_t peak = free.getPeakScratch();

  Invocation enough(pool, peak);
  EXPECT_EQ(c.tryRun(enough), "");
  EXPECT_EQ(enough.getPeakScratch(), peak);
  expectSameOutputs(c.buffers, want);

  for (size_t limit : {size_t(1), size_t(64), peak / 2, peak - 1}) {
    Invocation tight(pool, limit);
    EXPECT_EQ(c.tryRun(tight),
              "expected at most " + std::to_string(limit) +
                  " bytes of scratch, but the call needs more");
    EXPECT_LE(tight.getPeakScratch(), limit);
  }
}

TEST_F(InvocationTest, FailsAgainAndAgain) {
  // In the middle of a loop over several threads, with scratch alive on some.
  ThreadPool one(1), pool(4);
  Invocation single(one), free(pool);
  EXPECT_EQ(c.tryRun(single), "");
  size_t limit = single.getPeakScratch() - 1; // too little for any schedule
  Invocation tight(pool, limit);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(c.tryRun(tight),
              "expected at most " + std::to_string(limit) +
                  " bytes of scratch, but the call needs more");
  // Nothing of that stays with the threads.
  EXPECT_EQ(c.tryRun(free), "");
  expectSameOutputs(c.buffers, want);
}

TEST_F(InvocationTest, AnAbandonedCallLeavesNoScratch) {
  ThreadPool pool(1);
  auto peak = [&](std::string (CpuCase::*call)(Invocation &)) {
    Invocation invocation(pool);
    EXPECT_EQ((c.*call)(invocation), "");
    return invocation.getPeakScratch();
  };
  size_t routing = peak(&CpuCase::tryRoute);
  size_t attention = peak(&CpuCase::tryAttend);
  ASSERT_NE(routing, attention);
  auto small = routing < attention ? &CpuCase::tryRoute : &CpuCase::tryAttend;
  auto large = routing < attention ? &CpuCase::tryAttend : &CpuCase::tryRoute;

  // The small one just fits, also when the large one has failed before.
  Invocation invocation(pool, std::min(routing, attention));
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE((c.*large)(invocation), "");
    EXPECT_EQ((c.*small)(invocation), "");
  }
}

TEST_F(InvocationTest, TwoAtOnce) {
  // With threads of their own, and with shared ones.
  for (bool shared : {false, true}) {
    ThreadPool common(2);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 2; ++caller)
      callers.emplace_back([&, caller] {
        ThreadPool own(2);
        CpuCase mine = c;
        // Different work, so that a mix-up shows.
        mine.shape().scale = caller ? 0.25 : 1;
        OpBuffers first;
        for (int run = 0; run < 20; ++run) {
          Invocation invocation(shared ? common : own);
          wrong += !mine.tryRun(invocation).empty();
          if (run == 0) {
            first = mine.buffers;
            wrong += !verifyRoute(mine.problem, mine.buffers).good;
            wrong += !verifyAttention(mine.problem, mine.buffers).good;
          }
          wrong += first.out.data != mine.buffers.out.data ||
                   first.indices.data != mine.buffers.indices.data;
        }
      });
    for (std::thread &caller : callers)
      caller.join();
    EXPECT_EQ(wrong, 0) << (shared ? "shared threads" : "own threads");
  }
}

TEST_F(InvocationTest, AnErrorStaysWithItsCall) {
  // One caller fails while the other does not.
  ThreadPool pool(2);
  std::atomic<int> wrong{0};
  std::thread failing([&] {
    CpuCase mine = c;
    for (int run = 0; run < 50; ++run) {
      Invocation tight(pool, 64);
      wrong += mine.tryRoute(tight).empty();
    }
  });
  CpuCase mine = c;
  for (int run = 0; run < 50; ++run) {
    Invocation invocation(pool);
    EXPECT_EQ(mine.tryRoute(invocation), "");
    expectSameBits("indices", mine.buffers.indices, want.indices);
  }
  failing.join();
  EXPECT_EQ(wrong, 0);
}

//===----------------------------------------------------------------------===//
// Targets and functions
//===----------------------------------------------------------------------===//

TEST(CpuTarget, TheHost) {
  auto target = CpuTarget::get();
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  EXPECT_EQ(target->cpu, llvm::sys::getHostCPUName().str());
  EXPECT_TRUE(target->vectorBits == 128 || target->vectorBits == 256 ||
              target->vectorBits == 512);
}

TEST(CpuTarget, UnknownName) {
  auto target = CpuTarget::get("no-such-cpu");
  ASSERT_FALSE(bool(target));
  EXPECT_EQ(
      llvm::toString(target.takeError()),
      "expected the name of a CPU that LLVM knows, but got 'no-such-cpu'");
  CompileOptions options;
  options.cpu = "no-such-cpu";
  auto code = OpCode::compile(getContext(),
                              makeProblem(Type::F32, 1, 1, 64, 64), 4, options);
  ASSERT_FALSE(bool(code));
  EXPECT_EQ(
      llvm::toString(code.takeError()),
      "expected the name of a CPU that LLVM knows, but got 'no-such-cpu'");
}

/// A CPU, its registers, and what the host must have to run its code.
struct Model {
  const char *cpu;
  int64_t vectorBits;
  std::vector<const char *> features;
};

void PrintTo(const Model &model, std::ostream *os) { *os << model.cpu; }

class Models : public testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(
    X86, Models,
    testing::Values(Model{"x86-64-v2", 128, {"sse4.2"}},
                    Model{"x86-64-v3", 256, {"avx2", "fma", "f16c"}}),
    [](const auto &info) {
      return "V" + std::to_string(info.param.vectorBits);
    });

TEST_P(Models, RunRight) {
  const Model &model = GetParam();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  if (triple.getArch() != llvm::Triple::x86_64)
    GTEST_SKIP() << "not x86-64";
  auto target = CpuTarget::get(model.cpu);
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  EXPECT_EQ(target->vectorBits, model.vectorBits);
  auto host = llvm::sys::getHostCPUFeatures();
  for (const char *feature : model.features)
    if (!host.lookup(feature))
      GTEST_SKIP() << "no " << feature;

  for (auto [dtype, rerank] :
       {std::pair<Type, std::optional<int64_t>>{Type::F32, std::nullopt},
        {Type::F16, std::nullopt},
        {Type::BF16, 8}}) {
    SCOPED_TRACE(npy::typeName(dtype));
    OpProblem problem = makeProblem(dtype, 6, 2, 300, 900, 40);
    problem.shape.params.rerank = rerank;
    problem.shape.valueDim = 24;
    problem.shape.batch = 2;
    problem.shape.kLen = {900, 517};
    problem.wantScores = true;
    CpuCase c(problem, 2);
    c.options.cpu = model.cpu;
    c.run();
    expectGood(verifyPyramid(c.problem, c.buffers));
    expectGood(verifyRoute(c.problem, c.buffers));
    expectGood(verifyAttention(c.problem, c.buffers));
  }
}

std::unique_ptr<CpuModule> compileText(const char *text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &getContext());
  if (!module)
    return nullptr;
  auto compiled = compileForCpu(*module, CompileOptions());
  if (compiled)
    return std::move(*compiled);
  ADD_FAILURE() << llvm::toString(compiled.takeError());
  return nullptr;
}

TEST(CpuModule, UnknownFunction) {
  auto module = compileText("func.func @there(%arg0: f32) { return }");
  ASSERT_TRUE(module);
  Invocation invocation(getPool());
  EXPECT_EQ(
      takeText(module->call("there", {CpuArgument::scalar(1)}, invocation)),
      "");
  for (const char *name : {"elsewhere", "", "main"}) {
    std::string text =
        takeText(module->call(name, {CpuArgument::scalar(1)}, invocation));
    EXPECT_NE(text, "");
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
  // And the module is as good as before.
  EXPECT_EQ(
      takeText(module->call("there", {CpuArgument::scalar(1)}, invocation)),
      "");
}

TEST(CpuModule, FirstCallsOnTwoThreads) {
  // Machine code may be made at the first call.
  for (int run = 0; run < 20; ++run) {
    auto module = compileText(R"(
      func.func @copy(%from: tensor<?xf32>, %to: tensor<?xf32>)
          -> tensor<?xf32> {
        %0 = linalg.copy ins(%from : tensor<?xf32>) outs(%to : tensor<?xf32>)
            -> tensor<?xf32>
        return %0 : tensor<?xf32>
      })");
    ASSERT_TRUE(module);
    std::atomic<int> ready{0}, wrong{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 2; ++caller)
      callers.emplace_back([&, caller] {
        std::vector<float> from(100, caller + 1), to(100, 0);
        ThreadPool pool(1);
        Invocation invocation(pool);
        ++ready;
        while (ready < 2)
          std::this_thread::yield();
        wrong += !takeText(module->call("copy",
                                        {CpuArgument::array(from.data(), {100}),
                                         CpuArgument::array(to.data(), {100})},
                                        invocation))
                      .empty();
        wrong += from != to;
      });
    for (std::thread &caller : callers)
      caller.join();
    ASSERT_EQ(wrong, 0) << "run " << run;
  }
}

} // namespace
