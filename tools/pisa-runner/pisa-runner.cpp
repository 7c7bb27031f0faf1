//===- pisa-runner.cpp - Compile and run on npy files -----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "pisa/Pipelines/Pipelines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace pisa;
namespace cl = llvm::cl;

namespace {
/// The command line. A struct, so that nothing is registered outside this tool.
struct CommandLine {
  cl::OptionCategory category{"pisa-runner options"};

  cl::opt<std::string> file{cl::Positional, cl::desc("[file.mlir]"),
                            cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::desc("Function of the file to run (default: the only one)"),
      cl::cat(category)};
  cl::opt<std::string> op{
      "op", cl::desc("Run one op: attention, route or build_pyramid"),
      cl::cat(category)};
  cl::opt<std::string> shape{"shape", cl::desc("BxHqxHkvxTqxTkxD of --op"),
                             cl::cat(category)};
  cl::opt<std::string> dtype{
      "dtype",
      cl::desc("Type of q, k, v: f32, f16 or bf16 (default: f32, or that of "
               "16-bit inputs)"),
      cl::cat(category)};
  cl::opt<int64_t> valueDim{"value-dim", cl::desc("Dv (default: D)"),
                            cl::cat(category)};
  cl::opt<std::string> kLen{
      "k-len", cl::desc("Keys of each sequence, with commas (default: Tk)"),
      cl::cat(category)};
  cl::opt<std::string> qStart{
      "q-start",
      cl::desc("Position of query 0 of each sequence (default: k_len - Tq)"),
      cl::cat(category)};
  cl::opt<double> scale{"scale", cl::desc("Softmax scale (default: 1/sqrt(D))"),
                        cl::cat(category)};
  cl::opt<int64_t> blockSize{"block-size", cl::desc("C (default 64)"),
                             cl::init(64), cl::cat(category)};
  cl::opt<int64_t> fanout{"fanout", cl::desc("g (default 2)"), cl::init(2),
                          cl::cat(category)};
  cl::opt<int64_t> topk{"topk", cl::desc("K (default 16)"), cl::init(16),
                        cl::cat(category)};
  cl::opt<int64_t> beam{"beam", cl::desc("W (default: topk)"),
                        cl::cat(category)};
  cl::opt<int64_t> rerank{
      "rerank", cl::desc("R (default: absent, all leaves are scored exactly)"),
      cl::cat(category)};
  cl::opt<int64_t> leafAtoms{"leaf-atoms", cl::desc("A (default 4)"),
                             cl::init(4), cl::cat(category)};
  cl::opt<int64_t> queryBlock{"query-block", cl::desc("Q (default 1)"),
                              cl::init(1), cl::cat(category)};
  cl::opt<int64_t> sink{"sink", cl::desc("Forced first blocks (default 1)"),
                        cl::init(1), cl::cat(category)};
  cl::opt<int64_t> local{
      "local", cl::desc("Forced blocks up to the current one (default 2)"),
      cl::init(2), cl::cat(category)};
  cl::opt<bool> causal{"causal", cl::desc("Mask later keys (default true)"),
                       cl::init(true), cl::cat(category)};
  cl::opt<std::string> summaryDtype{
      "summary-dtype",
      cl::desc("Storage of summaries: f32, f16 or bf16 (default: dtype)"),
      cl::cat(category)};
  cl::opt<bool> scores{"scores",
                       cl::desc("Compute and write scores with --op=route"),
                       cl::cat(category)};

  cl::list<std::string> inputs{
      "inputs",
      cl::desc(
          "name=file.npy, name=number or file.npz, with commas between them; "
          "random normal where absent"),
      cl::cat(category)};
  cl::opt<std::string> outputDir{
      "output-dir", cl::desc("Write outputs here as .npy"), cl::cat(category)};
  cl::opt<std::string> json{"json", cl::desc("Write timings and memory here"),
                            cl::cat(category)};
  cl::opt<std::string> target{
      "target",
      cl::desc(
          "cpu, cuda (the first device; CUDA_VISIBLE_DEVICES orders them), "
          "auto (cuda if there is a device, and says so), or reference: "
          "the float64 oracle (default cpu)"),
      cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu",
                           cl::desc("CPU to compile for (default: this one)"),
                           cl::cat(category)};
  cl::opt<unsigned> threads{"threads", cl::desc("Threads (default: all cores)"),
                            cl::init(0), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of random inputs (default 0)"),
                         cl::init(0), cl::cat(category)};
  cl::opt<std::string> time{
      "time", cl::ValueOptional, cl::init("0"),
      cl::desc("Print the median time of n runs (default n = 5)"),
      cl::cat(category)};
  cl::opt<bool> verify{"verify", cl::desc("Compare with the float64 oracle"),
                       cl::cat(category)};
  cl::opt<double> toleranceScale{
      "tolerance-scale",
      cl::desc("Multiplies the tolerances of --verify (default 1)"),
      cl::init(1), cl::cat(category)};
  cl::opt<bool> check{"check", cl::desc("Report lists with an entry twice"),
                      cl::cat(category)};
  cl::opt<uint64_t> scratchLimit{
      "scratch-limit", cl::desc("Most bytes of scratch (default: no bound)"),
      cl::init(0), cl::cat(category)};
  cl::list<std::string> printAfter{
      "print-ir-after-level",
      cl::desc("Print the IR after problem, phase, tile, kernel or llvm; with "
               "--target=cuda problem, phase, tile, gpu-kernel or plan"),
      cl::CommaSeparated, cl::cat(category)};
};
} // namespace

/// A request that nothing will honour is an error.
static llvm::Error refuseIdle(const CommandLine &line) {
  auto refuse = [](std::initializer_list<const cl::Option *> options,
                   const char *needed) -> llvm::Error {
    for (const cl::Option *option : options)
      if (option->getNumOccurrences() > 0)
        return llvm::createStringError("expected --" + option->ArgStr +
                                       " only " + needed);
    return llvm::Error::success();
  };
  if (line.op.empty())
    if (auto error = refuse(
            {&line.shape, &line.dtype, &line.valueDim, &line.kLen, &line.qStart,
             &line.scale, &line.blockSize, &line.fanout, &line.topk, &line.beam,
             &line.rerank, &line.leafAtoms, &line.queryBlock, &line.sink,
             &line.local, &line.causal, &line.summaryDtype},
            "with --op"))
      return error;
  if (!line.op.empty())
    if (auto error = refuse({&line.entry}, "with a file"))
      return error;
  if (line.op != "route")
    if (auto error = refuse({&line.scores}, "with --op=route"))
      return error;
  // What not every target honours needs a target that does: auto may be any.
  if (line.target != "cpu")
    if (auto error =
            refuse({&line.cpu, &line.scratchLimit}, "with --target=cpu"))
      return error;
  if (line.target != "cpu" && line.target != "cuda")
    // A list's own operator& gives its storage.
    if (auto error = refuse({std::addressof(line.printAfter)},
                            "with --target=cpu or cuda"))
      return error;
  if (line.target != "cpu" && line.target != "reference")
    if (auto error = refuse({&line.threads}, "with --target=cpu or reference"))
      return error;
  if (line.target == "reference")
    if (auto error = refuse({&line.check}, "with --target=cpu, cuda or auto"))
      return error;
  return llvm::Error::success();
}

static llvm::Expected<runner::ExitCode> run(const CommandLine &line) {
  runner::Options options;
  options.target = line.target;
  if (!llvm::is_contained({"cpu", "cuda", "auto", "reference"}, options.target))
    return llvm::createStringError(
        "expected --target to be cpu, cuda, auto or reference, but got '" +
        options.target + "'");
  options.entry = line.entry;
  options.outputDir = line.outputDir;
  options.jsonFile = line.json;
  options.verify = line.verify;
  options.toleranceScale = line.toleranceScale;
  if (!(options.toleranceScale >= 0) || std::isinf(options.toleranceScale))
    return llvm::createStringError(
        "expected --tolerance-scale to be finite and at least 0, "
        "but got %g",
        options.toleranceScale);
  options.threads = line.threads;
  if (options.threads > 1024)
    return llvm::createStringError(
        "expected --threads to be in [0, 1024], but got "
        "%u",
        options.threads);
  options.seed = line.seed;
  options.scratchLimit = line.scratchLimit;
  std::string time = line.time;
  if (time.empty())
    time = "5";
  if (llvm::StringRef(time).getAsInteger(10, options.timedRuns) ||
      options.timedRuns < 0 || options.timedRuns > 1000000)
    return llvm::createStringError(
        "expected --time to be in [0, 1000000], but got "
        "'" +
        time + "'");
  options.compile.cpu = line.cpu;
  options.compile.checkInputs = line.check;
  llvm::StringSet<> printAfter;
  for (const std::string &level : line.printAfter) {
    llvm::ArrayRef<llvm::StringRef> names =
        line.target == "cuda" ? mlir::pisa::getNvptxLevelNames()
                              : mlir::pisa::getLevelNames();
    if (!llvm::is_contained(names, level))
      return llvm::createStringError(
          "expected --print-ir-after-level to be one of " +
          llvm::join(names, ", ") + ", but got '" + level + "'");
    printAfter.insert(level);
  }
  if (!printAfter.empty())
    options.compile.afterLevel = printAfterLevels(printAfter, llvm::outs());
  for (const std::string &inputs : line.inputs)
    if (auto error = runner::parseInputs(inputs, options.inputs))
      return error;
  if (auto error = refuseIdle(line))
    return error;

  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  if (!line.file.empty()) {
    if (!line.op.empty())
      return llvm::createStringError("expected a file or --op, but got both");
    return runner::runFile(context, options, line.file);
  }
  if (line.op.empty())
    return llvm::createStringError(
        "expected a .mlir file or --op, but got neither");

  runner::OpOptions op;
  op.op = line.op;
  auto given = [](const auto &option, auto &value) {
    if (option.getNumOccurrences())
      value = option.getValue();
  };
  given(line.shape, op.shape);
  given(line.dtype, op.dtype);
  given(line.summaryDtype, op.summaryDtype);
  given(line.kLen, op.kLen);
  given(line.qStart, op.qStart);
  given(line.valueDim, op.valueDim);
  given(line.scale, op.scale);
  given(line.beam, op.params.beam);
  given(line.rerank, op.params.rerank);
  op.scores = line.scores;
  op.params.blockSize = line.blockSize;
  op.params.fanout = line.fanout;
  op.params.topk = line.topk;
  op.params.leafAtoms = line.leafAtoms;
  op.params.queryBlock = line.queryBlock;
  op.params.sinkBlocks = line.sink;
  op.params.localBlocks = line.local;
  op.params.causal = line.causal;
  return runner::runOp(context, options, op);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine line;
  cl::HideUnrelatedOptions(line.category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Compiles a function or an op for the CPU or a GPU of this machine and "
      "runs it.\n\n"
      "Exit codes: 0 success, 1 error, 2 --verify found differences.\n");
  auto exit = run(line);
  if (exit)
    return *exit;
  llvm::outs().flush();
  llvm::WithColor::error(llvm::errs(), "pisa-runner")
      << llvm::toString(exit.takeError()) << "\n";
  return runner::Failure;
}
