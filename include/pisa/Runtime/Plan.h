//===- Plan.h - The host side of a compiled GPU function --------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_PLAN_H
#define PISA_RUNTIME_PLAN_H

#include "pisa/Runtime/RuntimeStatus.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pisa {

/// What an instruction of a plan does. Each but `Launch`, `Check` and `End`
/// defines the 64-bit register of its own number. S and U: signed, unsigned.
enum class PlanOp : uint8_t {
  Constant, ///< `immediate`
  Pointer,  ///< address of the first element of tensor `argument`
  Dim,      ///< size of dimension `dimension` of tensor `argument`
  Stride,   ///< its stride, in elements
  Scalar,   ///< `argument`: I32 with its sign extended, F32 as its bits
  Add,
  Sub,
  Mul,
  DivS, ///< towards zero
  DivU,
  FloorDivS,
  CeilDivS,
  RemS, ///< with the dividend's sign
  RemU,
  MinS,
  MaxS,
  MinU,
  MaxU,
  And,
  Or,
  Xor,
  Shl,
  ShrS,
  ShrU,
  Compare, ///< 1 or 0
  Select,  ///< operand 0 != 0 ? operand 1 : operand 2
  Scratch, ///< address of so many bytes of memory, aligned to 256 bytes, valid
           ///< until the plan's end
  Launch,
  Check, ///< waits for what was launched and fails if the 64 bits at scratch
         ///< address operand 0 are not all ones: bits 31 and up number a list
         ///< of [B, operand 1, operand 2, n] with an entry twice, those below
         ///< are it
  For, ///< what lies before instruction number `immediate` runs for operand 0,
       ///< operand 0 + operand 2, ... below operand 1
  End, ///< of the loop of `For` number operand 0
};
constexpr unsigned numPlanOps = unsigned(PlanOp::End) + 1;

enum class PlanPredicate : uint8_t {
  Eq,
  Ne,
  SLt,
  SLe,
  SGt,
  SGe,
  ULt,
  ULe,
  UGt,
  UGe,
};
constexpr unsigned numPlanPredicates = unsigned(PlanPredicate::UGe) + 1;

struct PlanArgument {
  enum Kind : uint8_t { Tensor, F32, I32, I64 };
  Kind kind = Tensor;
  std::string name; ///< for messages
  // Of tensors:
  std::string elementType;    ///< bf16, f16, f32, i32, ...
  std::vector<int64_t> shape; ///< -1: any size
};

struct PlanKernel {
  std::string name; ///< of the entry in the image
  uint32_t threads = 0;
  uint32_t sharedBytes = 0; ///< dynamic
};

struct PlanParameter {
  uint32_t reg = 0;
  uint32_t bytes = 8; ///< 4 or 8
};

struct PlanLaunch {
  uint32_t kernel = 0;
  std::array<uint32_t, 3> grid = {}; ///< registers; a size of 0: no launch
  std::vector<PlanParameter> parameters;
};

struct PlanInstruction {
  PlanOp op = PlanOp::Constant;
  PlanPredicate predicate = PlanPredicate::Eq; ///< of Compare
  uint32_t argument = 0;
  uint32_t dimension = 0;
  int64_t immediate = 0; ///< a constant's value; of For, the number of its End
  std::array<uint32_t, 3> operands = {}; ///< registers
  PlanLaunch launch;
};

/// A program that computes sizes from the arguments and launches kernels, with
/// counted loops as its only branches. Everything in it may be evaluated at any
/// time: an overflow or a division by zero is an error only where its result
/// reaches a launch, a loop or the size of scratch memory, and a `Select` drops
/// what it does not choose.
struct Plan {
  std::string name;
  std::vector<PlanArgument> arguments;
  std::vector<PlanKernel> kernels;
  std::vector<PlanInstruction> program;

  // Append an instruction and return its register.
  uint32_t addConstant(int64_t value);
  uint32_t addArgument(PlanOp op, uint32_t argument, uint32_t dimension = 0);
  uint32_t addBinary(PlanOp op, uint32_t lhs, uint32_t rhs);
  uint32_t addCompare(PlanPredicate predicate, uint32_t lhs, uint32_t rhs);
  uint32_t addSelect(uint32_t condition, uint32_t yes, uint32_t no);
  uint32_t addScratch(uint32_t bytes);
  void addLaunch(PlanLaunch launch);
  void addCheck(uint32_t status, uint32_t kvHeads, uint32_t queryBlocks);
  /// Begins a loop and returns its counter.
  uint32_t beginLoop(uint32_t lower, uint32_t upper, uint32_t step);
  void endLoop(uint32_t counter);

  /// What is wrong with the plan; empty if nothing is. A scratch address may
  /// only be added to, subtracted from, selected and passed to kernels in 8
  /// bytes. Loops nest, have no scratch memory of their own, and nothing that
  /// they define is used after them.
  std::string verify() const;

  std::string toJson() const;
  /// The plan is verified.
  static RuntimeOr<Plan> fromJson(const std::string &text);
};

const char *getPlanOpName(PlanOp op);
unsigned getNumOperands(PlanOp op);
const char *getPlanPredicateName(PlanPredicate predicate);

/// What a caller gives for one argument.
struct ArgumentValue {
  // A tensor.
  void *data = nullptr;
  const int64_t *shape = nullptr;
  const int64_t *strides = nullptr; ///< in elements; null: row-major, compact
  // A scalar: its bits, from the lowest.
  uint64_t bits = 0;

  static ArgumentValue tensor(void *data, const int64_t *shape,
                              const int64_t *strides) {
    return {data, shape, strides, 0};
  }
  static ArgumentValue scalar(uint64_t bits) {
    return {nullptr, nullptr, nullptr, bits};
  }
  static ArgumentValue scalar(float value);
};

/// Checks the shapes of `arguments` (as many as `plan` has) against the plan.
RuntimeStatus checkArguments(const Plan &plan, const ArgumentValue *arguments);

/// What to do at the launches and checks of a plan, in their order.
class PlanVisitor {
public:
  virtual ~PlanVisitor() = default;
  /// A failure ends the evaluation.
  virtual RuntimeStatus visit(const PlanInstruction &instruction,
                              int64_t *registers) = 0;
};

/// Evaluates a plan that has been verified. `registers` and `faults` have an
/// element for each instruction. Scratch memory begins at `scratchBase`;
/// `scratchBytes` becomes its size, which does not depend on where it begins.
/// Launches have legal grids and parameters that fit when `visitor` sees them.
RuntimeStatus evaluatePlan(const Plan &plan, const ArgumentValue *arguments,
                           uint64_t scratchBase, int64_t *registers,
                           uint32_t *faults, int64_t &scratchBytes,
                           PlanVisitor *visitor = nullptr);

} // namespace pisa

#endif // PISA_RUNTIME_PLAN_H
