//===- Options.h - The runner's command line, parsed ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TOOLS_PISA_RUNNER_OPTIONS_H
#define PISA_TOOLS_PISA_RUNNER_OPTIONS_H

#include "pisa/Harness/OpProblem.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pisa::runner {

/// What both modes share.
struct Options {
  std::string target = "cpu"; ///< cpu, cuda, reference or auto
  std::string entry;
  std::map<std::string, std::string> inputs; ///< name -> file or number
  std::string outputDir;                     ///< "" writes nothing
  std::string jsonFile;                      ///< "" writes nothing
  int64_t timedRuns = 0;
  bool verify = false;
  double toleranceScale = 1;
  unsigned threads = 0;
  uint64_t seed = 0;
  size_t scratchLimit = 0;
  CompileOptions compile;
};

/// A problem given on the command line; shapes that inputs fix are absent.
struct OpOptions {
  std::string op;
  std::optional<std::string> shape, dtype, summaryDtype, kLen, qStart;
  std::optional<int64_t> valueDim;
  std::optional<double> scale;
  bool scores = false;
  oracle::Params params;
};

/// Prints to stdout unless asked to be quiet about it; exit code of the
/// process.
enum ExitCode { Success = 0, Failure = 1, Mismatch = 2 };

/// `--op=...`
llvm::Expected<ExitCode> runOp(mlir::MLIRContext &context,
                               const Options &options, const OpOptions &op);
/// A function of a .mlir file.
llvm::Expected<ExitCode> runFile(mlir::MLIRContext &context,
                                 const Options &options,
                                 const std::string &path);

// Inputs.cpp

/// Reads "a=x.npy,b=3" or one .npz (every member under its name).
llvm::Error parseInputs(const std::string &text,
                        std::map<std::string, std::string> &inputs);
/// The array of an input: a .npy file, or "file.npz:member".
llvm::Expected<npy::Array> readInput(const std::string &name,
                                     const std::string &value);
/// `array` as `type`: floats are rounded once, int64 becomes int32 if it fits.
llvm::Expected<npy::Array> convertInput(const std::string &name,
                                        const npy::Array &array,
                                        npy::Array::Type type);
/// "1x8x2" as numbers >= 0.
llvm::Expected<std::vector<int64_t>> parseShape(const std::string &option,
                                                const std::string &text);
llvm::Error writeOutput(const std::string &folder, const std::string &name,
                        const npy::Array &array);
llvm::Error writeText(const std::string &path, const std::string &text);
std::string printShape(llvm::ArrayRef<int64_t> shape);
/// Writes --json, if asked for: what ran, its timings ({"name", "ms"} each),
/// memory, and `where` it ran.
llvm::Error writeReport(const Options &options, llvm::StringRef name,
                        llvm::json::Array timings, int64_t scratchBytes,
                        llvm::json::Object where);

/// The median of several times; `runs` is at least 1.
llvm::Expected<double>
medianOf(int64_t runs, llvm::function_ref<llvm::Expected<double>()> time);
/// Median of the milliseconds that `runs` calls of `body` take.
llvm::Expected<double> medianMs(int64_t runs,
                                llvm::function_ref<llvm::Error()> body);

} // namespace pisa::runner

#endif // PISA_TOOLS_PISA_RUNNER_OPTIONS_H
