//===- OpProblem.h - One problem: its module, its buffers, its answers -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_HARNESS_OPPROBLEM_H
#define PISA_HARNESS_OPPROBLEM_H

#include "pisa/Compiler/Compile.h"
#include "pisa/Kernels/KernelSpec.h"
#include "pisa/Oracle/Oracle.h"
#include "pisa/Support/Npy.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace pisa {

/// A problem as the runner and the tests state it.
struct OpProblem {
  oracle::Problem shape;
  npy::Array::Type dtype = npy::Array::Type::F32; ///< F32, F16 or BF16
  /// Storage of summaries; absent: dtype.
  std::optional<npy::Array::Type> summaryDtype;
  bool wantScores = false;
  bool wantOpenSums = false;

  npy::Array::Type getSummaryType() const {
    return summaryDtype.value_or(dtype);
  }
  bool usesAtoms() const { return shape.params.rerank.has_value(); }
  int64_t numNodes() const;
  int64_t numLevels() const;
};

/// Everything that the problem's functions read and write, contiguous, in the
/// layouts of docs/Spec.md.
struct OpBuffers {
  npy::Array q, k, v;
  npy::Array kLen, qStart;
  npy::Array pyramid, openSums, atoms, outlier;
  npy::Array indices, count, scores;
  npy::Array out, lse;
};

/// Independent normal values, rounded to `type`; the same on every machine.
npy::Array randomNormal(uint64_t seed, std::vector<int64_t> shape,
                        npy::Array::Type type);

/// Normal random q, k, v rounded to the problem's type; the slack of k and v
/// past each length holds NaN.
void fillRandom(const OpProblem &problem, uint64_t seed, OpBuffers &buffers);
/// Lengths from the problem; outputs of the right shapes, filled with NaN.
void allocateOutputs(const OpProblem &problem, OpBuffers &buffers);

/// A module with functions @build_pyramid, @route and @attention of the
/// problem, dynamic in B, Tq and Tk; `listWidth` entries a list in @attention.
std::string printModule(const OpProblem &problem, int64_t listWidth,
                        unsigned functions = AllFunctions);

/// An argument of a function of `printModule`.
struct OpArgument {
  npy::Array *array; ///< null: the scale
  bool isOutput;
};
llvm::SmallVector<OpArgument> getArguments(const OpProblem &problem,
                                           OpBuffers &buffers,
                                           KernelFunctions function);

/// Why the problem is refused, if it is: by the oracle's rules, the dialect's,
/// or for the memory that its buffers would take.
std::optional<std::string> checkProblem(mlir::MLIRContext &context,
                                        const OpProblem &problem);

/// Bytes that this process may use: of the machine, or by its limit.
uint64_t getUsableMemory();

/// The compiled functions of a problem. They serve any B, Tq, Tk.
class OpCode {
public:
  static llvm::Expected<std::unique_ptr<OpCode>>
  compile(mlir::MLIRContext &context, const OpProblem &problem,
          int64_t listWidth, const CompileOptions &options,
          unsigned functions = AllFunctions);

  llvm::Error buildPyramid(const OpProblem &problem, OpBuffers &buffers,
                           Invocation &invocation);
  llvm::Error route(const OpProblem &problem, OpBuffers &buffers,
                    Invocation &invocation);
  llvm::Error attention(const OpProblem &problem, OpBuffers &buffers,
                        Invocation &invocation);

private:
  llvm::Error call(const char *name, KernelFunctions function,
                   const OpProblem &problem, OpBuffers &buffers,
                   Invocation &invocation);
  std::unique_ptr<CpuModule> module;
};

/// What a comparison with the oracle found.
struct Verdict {
  bool good = true;
  std::string text; ///< one line, without its end
};

/// How outputs are compared with the oracle.
struct VerifyOptions {
  /// Multiplies every tolerance; 0 asks for the oracle's own bits.
  double toleranceScale = 1;
  /// Longer sequences are checked on 256 query blocks and more: the first, the
  /// last, those around every boundary of the tree, and random ones.
  int64_t allQueriesUpTo = 4097;
};

Verdict verifyPyramid(const OpProblem &problem, const OpBuffers &buffers,
                      const VerifyOptions &options = {});
Verdict verifyRoute(const OpProblem &problem, const OpBuffers &buffers,
                    const VerifyOptions &options = {});
Verdict verifyAttention(const OpProblem &problem, const OpBuffers &buffers,
                        const VerifyOptions &options = {});

/// Fills the outputs from the float64 oracle.
void referencePyramid(const OpProblem &problem, OpBuffers &buffers);
void referenceRoute(const OpProblem &problem, OpBuffers &buffers);
void referenceAttention(const OpProblem &problem, OpBuffers &buffers);

/// Query-key pairs that attention computes: visible keys of the listed blocks,
/// summed over all query heads.
int64_t countPairs(const OpProblem &problem, const OpBuffers &buffers);

} // namespace pisa

#endif // PISA_HARNESS_OPPROBLEM_H
