//===- pisa-sweep.cpp - Many shapes against the oracle ----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"


#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace pisa;
namespace cl = llvm::cl;

/// Runs the three functions of a problem and compares each with the oracle.
static Verdict runCase(OpCode &code, const OpProblem &problem, uint64_t seed,
                       ThreadPool &pool) {
  if (std::optional<std::string> error = oracle::validate(problem.shape))
    return {false, "not a valid problem: " + *error};
  OpBuffers buffers;
  fillRandom(problem, seed, buffers);
  allocateOutputs(problem, buffers);
  Invocation invocation(pool);
  struct Step {
    llvm::Error (OpCode::*call)(const OpProblem &, OpBuffers &, Invocation &);
    Verdict (*verify)(const OpProblem &, const OpBuffers &,
                      const VerifyOptions &);
  };
  const Step steps[] = {{&OpCode::buildPyramid, verifyPyramid},
                        {&OpCode::route, verifyRoute},
                        {&OpCode::attention, verifyAttention}};
  std::string text;
  for (const Step &step : steps) {
    if (auto error = (code.*step.call)(problem, buffers, invocation))
      return {false, llvm::toString(std::move(error))};
    Verdict verdict = step.verify(problem, buffers, {});
    if (!verdict.good)
      return verdict;
    text += (text.empty() ? "" : "; ") + verdict.text;
  }
  return {true, text};
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("pisa-sweep options");
  cl::opt<int64_t> random("random", cl::desc("Number of random cases"),
                          cl::init(0), cl::cat(category));
  cl::opt<uint64_t> seed("seed", cl::desc("Seed of the random cases"),
                         cl::init(1), cl::cat(category));
  cl::opt<bool> pairwise("pairwise", cl::desc("Run the pairwise covering"),
                         cl::cat(category));
  cl::opt<unsigned> threads("threads", cl::desc("Threads (default: all cores)"),
                            cl::init(0), cl::cat(category));
  cl::opt<bool> verbose("verbose", cl::desc("Print every case"),
                        cl::cat(category));
  cl::opt<unsigned> shard("shard",
                          cl::desc("Run only this one of --shards parts"),
                          cl::init(0), cl::cat(category));
  cl::opt<unsigned> shards("shards",
                           cl::desc("Parts that the cases are split in"),
                           cl::init(1), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Compares compiled code with the float64 oracle on many shapes.\n");

  std::vector<sweep::Group> groups;
  if (random > 0) {
    llvm::outs() << "random cases: " << random << ", seed " << seed << "\n";
    groups = sweep::getRandomCases(seed, random);
  }
  if (pairwise) {
    int64_t infeasible = 0;
    std::vector<sweep::Group> more = sweep::getPairwiseCases(infeasible);
    llvm::outs() << "pairwise cases: " << more.size() << ", pairs beyond the "
                 << "memory or time of a case: " << infeasible << "\n";
    groups.insert(groups.end(), more.begin(), more.end());
  }

  if (shard >= shards) {
    llvm::errs() << "pisa-sweep: expected --shard to be below --shards = "
                 << shards << ", but got " << shard << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  ThreadPool pool(threads);
  int64_t passed = 0, failed = 0, number = 0;
  auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < groups.size(); ++i) {
    sweep::Group &group = groups[i];
    // Seeds count all cases, so that a part finds what the whole would.
    if (i % shards != shard) {
      number += group.problems.size();
      continue;
    }
    // A context of its own for each module, so that memory does not grow.
    mlir::MLIRContext context(registry);
    context.disableMultithreading();
    auto code = OpCode::compile(context, group.problems.front(),
                                group.problems.front().shape.params.topk, {});
    std::string compileError;
    if (!code)
      compileError = llvm::toString(code.takeError());
    for (OpProblem &problem : group.problems) {
      problem.shape.threads = threads;
      Verdict verdict = {false, compileError};
      if (compileError.empty())
        verdict = runCase(**code, problem, seed + number, pool);
      ++number;
      (verdict.good ? passed : failed)++;
      if (!verdict.good || verbose)
        llvm::outs() << (verdict.good ? "right " : "WRONG ")
                     << sweep::describe(problem)
                     << " --seed=" << seed + number - 1 << "\n  "
                     << verdict.text << "\n";
      std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - begin;
      if (number % 40 == 0)
        llvm::outs() << llvm::formatv("{0} cases, {1} wrong, {2:f0} s\n",
                                      number, failed, taken.count());
      llvm::outs().flush();
    }
  }
  llvm::outs() << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}
