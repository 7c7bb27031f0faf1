//===- PlanEvaluate.cpp - Sizes and addresses of a plan ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/Plan.h"

#include <algorithm>
#include <climits>

using namespace pisa;

namespace {

constexpr int64_t scratchAlignment = 256;
// No device has as much; keeps sums of sizes from overflowing.
constexpr int64_t maxScratchBytes = int64_t(1) << 48;
// The limits of CUDA's grids.
constexpr int64_t maxTrips = INT32_MAX;
constexpr int64_t maxGrid[] = {INT32_MAX, 65535, 65535};

RuntimeStatus invalid(std::string message) {
  return {RuntimeStatus::InvalidValue, std::move(message)};
}

/// Sets `result` and returns true, or returns false where there is none: on
/// overflow and division by zero.
bool evaluateBinary(PlanOp op, int64_t a, int64_t b, int64_t &result) {
  uint64_t ua = a, ub = b;
  switch (op) {
  case PlanOp::Add:
    return !__builtin_add_overflow(a, b, &result);
  case PlanOp::Sub:
    return !__builtin_sub_overflow(a, b, &result);
  case PlanOp::Mul:
    return !__builtin_mul_overflow(a, b, &result);
  case PlanOp::DivS:
  case PlanOp::FloorDivS:
  case PlanOp::CeilDivS:
  case PlanOp::RemS: {
    if (b == 0 || (a == INT64_MIN && b == -1))
      return false;
    int64_t quotient = a / b, remainder = a % b;
    bool isNegative = (a < 0) != (b < 0);
    if (op == PlanOp::RemS)
      result = remainder;
    else if (op == PlanOp::FloorDivS)
      result = quotient - (remainder != 0 && isNegative);
    else if (op == PlanOp::CeilDivS)
      result = quotient + (remainder != 0 && !isNegative);
    else
      result = quotient;
    return true;
  }
  case PlanOp::DivU:
  case PlanOp::RemU:
    if (b == 0)
      return false;
    result = op == PlanOp::DivU ? ua / ub : ua % ub;
    return true;
  case PlanOp::MinS:
    result = std::min(a, b);
    return true;
  case PlanOp::MaxS:
    result = std::max(a, b);
    return true;
  case PlanOp::MinU:
    result = std::min(ua, ub);
    return true;
  case PlanOp::MaxU:
    result = std::max(ua, ub);
    return true;
  case PlanOp::And:
    result = ua & ub;
    return true;
  case PlanOp::Or:
    result = ua | ub;
    return true;
  case PlanOp::Xor:
    result = ua ^ ub;
    return true;
  case PlanOp::Shl:
    if (ub >= 64)
      return false;
    result = ua << ub;
    return result >> b == a; // else it lost bits
  case PlanOp::ShrS:
    if (ub >= 64)
      return false;
    result = a >> b;
    return true;
  case PlanOp::ShrU:
    if (ub >= 64)
      return false;
    result = ua >> ub;
    return true;
  default:
    return false;
  }
}

bool evaluateCompare(PlanPredicate predicate, int64_t a, int64_t b) {
  uint64_t ua = a, ub = b;
  switch (predicate) {
  case PlanPredicate::Eq:
    return a == b;
  case PlanPredicate::Ne:
    return a != b;
  case PlanPredicate::SLt:
    return a < b;
  case PlanPredicate::SLe:
    return a <= b;
  case PlanPredicate::SGt:
    return a > b;
  case PlanPredicate::SGe:
    return a >= b;
  case PlanPredicate::ULt:
    return ua < ub;
  case PlanPredicate::ULe:
    return ua <= ub;
  case PlanPredicate::UGt:
    return ua > ub;
  case PlanPredicate::UGe:
    return ua >= ub;
  }
  return false;
}

int64_t getScalar(PlanArgument::Kind kind, uint64_t bits) {
  if (kind == PlanArgument::I32)
    return int32_t(bits);
  if (kind == PlanArgument::F32)
    return uint32_t(bits);
  return bits;
}

/// False on overflow.
bool getStride(const PlanArgument &argument, const ArgumentValue &value,
               uint32_t dimension, int64_t &result) {
  if (value.strides) {
    result = value.strides[dimension];
    return true;
  }
  result = 1;
  for (size_t i = dimension + 1; i < argument.shape.size(); ++i)
    if (__builtin_mul_overflow(result, value.shape[i], &result))
      return false;
  return true;
}

class Evaluator {
public:
  Evaluator(const Plan &plan, const ArgumentValue *arguments,
            uint64_t scratchBase, int64_t *registers, uint32_t *faults,
            PlanVisitor *visitor)
      : plan(plan), arguments(arguments), scratchBase(scratchBase),
        registers(registers), faults(faults), visitor(visitor) {}

  RuntimeStatus run();
  int64_t getScratchBytes() const { return scratchBytes; }

private:
  RuntimeStatus allocate(uint32_t index);
  RuntimeStatus checkLaunch(const PlanLaunch &launch);
  RuntimeStatus checkFault(uint32_t reg, const std::string &what);
  RuntimeStatus checkLoop(uint32_t index);
  RuntimeStatus visit(const PlanInstruction &instruction) {
    return visitor ? visitor->visit(instruction, registers) : RuntimeStatus();
  }

  const Plan &plan;
  const ArgumentValue *arguments;
  uint64_t scratchBase;
  int64_t *registers;
  // 0, or one more than the instruction that failed to define the register or
  // something that it was computed from.
  uint32_t *faults;
  PlanVisitor *visitor;
  int64_t scratchBytes = 0;
};

} // namespace

RuntimeStatus Evaluator::checkFault(uint32_t reg, const std::string &what) {
  if (!faults[reg])
    return {};
  uint32_t index = faults[reg] - 1;
  const PlanInstruction &instruction = plan.program[index];
  std::string operation = getPlanOpName(instruction.op);
  operation = "instruction " + std::to_string(index) + " (" + operation + ")";
  switch (instruction.op) {
  case PlanOp::DivS:
  case PlanOp::DivU:
  case PlanOp::FloorDivS:
  case PlanOp::CeilDivS:
  case PlanOp::RemS:
  case PlanOp::RemU:
    if (registers[instruction.operands[1]] == 0)
      return invalid(what + " comes from a division by zero in " + operation);
    break;
  default:
    break;
  }
  return invalid(what + " comes from an overflow of 64 bits in " + operation);
}

RuntimeStatus Evaluator::allocate(uint32_t index) {
  uint32_t reg = plan.program[index].operands[0];
  if (faults[reg])
    return checkFault(reg, "the size of scratch memory");
  int64_t bytes = registers[reg];
  if (bytes < 0 || bytes > maxScratchBytes ||
      scratchBytes + bytes > maxScratchBytes)
    return invalid("expected 0 to " + std::to_string(maxScratchBytes) +
                   " bytes of scratch memory, but got " +
                   std::to_string(bytes) + " in instruction " +
                   std::to_string(index));
  registers[index] = scratchBase + scratchBytes;
  scratchBytes +=
      (bytes + scratchAlignment - 1) / scratchAlignment * scratchAlignment;
  return {};
}

RuntimeStatus Evaluator::checkLaunch(const PlanLaunch &launch) {
  const std::string &name = plan.kernels[launch.kernel].name;
  for (unsigned i = 0; i != 3; ++i) {
    uint32_t reg = launch.grid[i];
    if (faults[reg])
      return checkFault(reg, "the grid of kernel '" + name + "'");
    int64_t size = registers[reg];
    if (size < 0 || size > maxGrid[i])
      return invalid("kernel '" + name + "': expected a grid of 0 to " +
                     std::to_string(maxGrid[i]) + " in dimension " +
                     std::to_string(i) + ", but got " + std::to_string(size));
  }
  for (size_t i = 0; i != launch.parameters.size(); ++i) {
    const PlanParameter &parameter = launch.parameters[i];
    if (faults[parameter.reg])
      return checkFault(parameter.reg, "parameter " + std::to_string(i) +
                                           " of kernel '" + name + "'");
    int64_t value = registers[parameter.reg];
    if (parameter.bytes == 4 && (value < INT32_MIN || value > UINT32_MAX))
      return invalid("kernel '" + name + "': parameter " + std::to_string(i) +
                     " has 32 bits, but is " + std::to_string(value));
  }
  return {};
}

RuntimeStatus Evaluator::checkLoop(uint32_t index) {
  const auto &operands = plan.program[index].operands;
  for (uint32_t reg : operands)
    if (RuntimeStatus status = checkFault(reg, "the range of a loop");
        status.failed())
      return status;
  std::string where = " in instruction " + std::to_string(index);
  int64_t lower = registers[operands[0]], upper = registers[operands[1]];
  int64_t step = registers[operands[2]], length = 0;
  if (step <= 0)
    return invalid("expected a loop to have a positive step, but got " +
                   std::to_string(step) + where);
  if (lower >= upper)
    return {};
  if (__builtin_sub_overflow(upper, lower, &length) ||
      (length - 1) / step >= maxTrips || upper > INT64_MAX - step)
    return invalid("expected a loop of at most " + std::to_string(maxTrips) +
                   " steps, but got one from " + std::to_string(lower) +
                   " to " + std::to_string(upper) + " by " +
                   std::to_string(step) + where);
  return {};
}

RuntimeStatus Evaluator::run() {
  for (uint32_t index = 0; index != plan.program.size(); ++index) {
    const PlanInstruction &instruction = plan.program[index];
    const auto &operands = instruction.operands;
    int64_t result = 0;
    uint32_t fault = 0;
    switch (instruction.op) {
    case PlanOp::Constant:
      result = instruction.immediate;
      break;
    case PlanOp::Pointer:
      result = reinterpret_cast<intptr_t>(arguments[instruction.argument].data);
      break;
    case PlanOp::Dim:
      result = arguments[instruction.argument].shape[instruction.dimension];
      break;
    case PlanOp::Stride:
      if (!getStride(plan.arguments[instruction.argument],
                     arguments[instruction.argument], instruction.dimension,
                     result))
        fault = index + 1;
      break;
    case PlanOp::Scalar:
      result = getScalar(plan.arguments[instruction.argument].kind,
                         arguments[instruction.argument].bits);
      break;
    case PlanOp::Compare:
      fault = std::max(faults[operands[0]], faults[operands[1]]);
      result = evaluateCompare(instruction.predicate, registers[operands[0]],
                               registers[operands[1]]);
      break;
    case PlanOp::Select: {
      uint32_t chosen = operands[registers[operands[0]] != 0 ? 1 : 2];
      fault = std::max(faults[operands[0]], faults[chosen]);
      result = registers[chosen];
      break;
    }
    case PlanOp::Scratch:
      faults[index] = 0;
      if (RuntimeStatus status = allocate(index); status.failed())
        return status;
      continue;
    case PlanOp::Launch:
      if (RuntimeStatus status = checkLaunch(instruction.launch);
          status.failed())
        return status;
      if (RuntimeStatus status = visit(instruction); status.failed())
        return status;
      break;
    case PlanOp::Check:
      for (uint32_t reg : operands)
        if (RuntimeStatus status = checkFault(reg, "an operand of a check");
            status.failed())
          return status;
      if (RuntimeStatus status = visit(instruction); status.failed())
        return status;
      break;
    case PlanOp::For:
      if (RuntimeStatus status = checkLoop(index); status.failed())
        return status;
      result = registers[operands[0]];
      if (result >= registers[operands[1]])
        index = instruction.immediate; // past its end
      break;
    case PlanOp::End: {
      const auto &loop = plan.program[operands[0]].operands;
      int64_t next = registers[operands[0]] + registers[loop[2]];
      if (next < registers[loop[1]]) {
        registers[operands[0]] = next;
        index = operands[0]; // the instruction after it is next
      }
      continue;
    }
    default:
      fault = std::max(faults[operands[0]], faults[operands[1]]);
      if (!evaluateBinary(instruction.op, registers[operands[0]],
                          registers[operands[1]], result) &&
          !fault)
        fault = index + 1;
      break;
    }
    registers[index] = result;
    faults[index] = fault;
  }
  return {};
}

RuntimeStatus pisa::evaluatePlan(const Plan &plan,
                                 const ArgumentValue *arguments,
                                 uint64_t scratchBase, int64_t *registers,
                                 uint32_t *faults, int64_t &scratchBytes,
                                 PlanVisitor *visitor) {
  Evaluator evaluator(plan, arguments, scratchBase, registers, faults, visitor);
  RuntimeStatus status = evaluator.run();
  scratchBytes = evaluator.getScratchBytes();
  return status;
}

RuntimeStatus pisa::checkArguments(const Plan &plan,
                                   const ArgumentValue *arguments) {
  for (size_t i = 0; i != plan.arguments.size(); ++i) {
    const PlanArgument &argument = plan.arguments[i];
    if (argument.kind != PlanArgument::Tensor)
      continue;
    if (!arguments[i].shape && !argument.shape.empty())
      return {RuntimeStatus::InvalidType,
              "'" + argument.name + "': expected a tensor, but got none"};
    for (size_t k = 0; k != argument.shape.size(); ++k) {
      int64_t size = arguments[i].shape[k];
      int64_t expected = argument.shape[k];
      if (size >= 0 && (expected == -1 || expected == size))
        continue;
      return invalid(
          "'" + argument.name + "': expected dimension " + std::to_string(k) +
          " to be " +
          (expected == -1 ? "at least 0" : std::to_string(expected)) +
          ", but got " + std::to_string(size));
    }
  }
  return {};
}
