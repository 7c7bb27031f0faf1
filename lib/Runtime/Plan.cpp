//===- Plan.cpp - Building and checking plans -------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/Plan.h"

#include <algorithm>
#include <cstring>

using namespace pisa;

namespace {

struct OpInfo {
  const char *name;
  unsigned numOperands;
};

// In the order of PlanOp.
constexpr OpInfo opInfos[] = {
    {"constant", 0}, {"pointer", 0}, {"dim", 0},       {"stride", 0},
    {"scalar", 0},   {"add", 2},     {"sub", 2},       {"mul", 2},
    {"divs", 2},     {"divu", 2},    {"floordivs", 2}, {"ceildivs", 2},
    {"rems", 2},     {"remu", 2},    {"mins", 2},      {"maxs", 2},
    {"minu", 2},     {"maxu", 2},    {"and", 2},       {"or", 2},
    {"xor", 2},      {"shl", 2},     {"shrs", 2},      {"shru", 2},
    {"compare", 2},  {"select", 3},  {"scratch", 1},   {"launch", 0},
    {"check", 3},    {"for", 3},     {"end", 1},
};
static_assert(std::size(opInfos) == numPlanOps);

// In the order of PlanPredicate.
constexpr const char *predicateNames[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                          "sge", "ult", "ule", "ugt", "uge"};
static_assert(std::size(predicateNames) == numPlanPredicates);

// What CUDA allows.
constexpr uint32_t maxThreads = 1024;
constexpr uint32_t maxParameterBytes = 4096;
// Beyond any device; keeps sums of sizes from overflowing.
constexpr uint32_t maxSharedBytes = 1u << 30;
constexpr size_t maxInstructions = 1u << 20;

} // namespace

const char *pisa::getPlanOpName(PlanOp op) {
  return opInfos[unsigned(op)].name;
}

unsigned pisa::getNumOperands(PlanOp op) {
  return opInfos[unsigned(op)].numOperands;
}

const char *pisa::getPlanPredicateName(PlanPredicate predicate) {
  return predicateNames[unsigned(predicate)];
}

ArgumentValue ArgumentValue::scalar(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return scalar(uint64_t(bits));
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static uint32_t append(Plan &plan, PlanInstruction instruction) {
  plan.program.push_back(std::move(instruction));
  return plan.program.size() - 1;
}

static uint32_t append(Plan &plan, PlanOp op,
                       std::array<uint32_t, 3> operands) {
  PlanInstruction instruction;
  instruction.op = op;
  instruction.operands = operands;
  return append(plan, std::move(instruction));
}

uint32_t Plan::addConstant(int64_t value) {
  PlanInstruction instruction;
  instruction.immediate = value;
  return append(*this, std::move(instruction));
}

uint32_t Plan::addArgument(PlanOp op, uint32_t argument, uint32_t dimension) {
  PlanInstruction instruction;
  instruction.op = op;
  instruction.argument = argument;
  instruction.dimension = dimension;
  return append(*this, std::move(instruction));
}

uint32_t Plan::addBinary(PlanOp op, uint32_t lhs, uint32_t rhs) {
  return append(*this, op, {lhs, rhs, 0});
}

uint32_t Plan::addCompare(PlanPredicate predicate, uint32_t lhs, uint32_t rhs) {
  uint32_t result = append(*this, PlanOp::Compare, {lhs, rhs, 0});
  program.back().predicate = predicate;
  return result;
}

uint32_t Plan::addSelect(uint32_t condition, uint32_t yes, uint32_t no) {
  return append(*this, PlanOp::Select, {condition, yes, no});
}

uint32_t Plan::addScratch(uint32_t bytes) {
  return append(*this, PlanOp::Scratch, {bytes, 0, 0});
}

void Plan::addLaunch(PlanLaunch launch) {
  PlanInstruction instruction;
  instruction.op = PlanOp::Launch;
  instruction.launch = std::move(launch);
  append(*this, std::move(instruction));
}

void Plan::addCheck(uint32_t status, uint32_t kvHeads, uint32_t queryBlocks) {
  append(*this, PlanOp::Check, {status, kvHeads, queryBlocks});
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

uint32_t Plan::beginLoop(uint32_t lower, uint32_t upper, uint32_t step) {
  return append(*this, PlanOp::For, {lower, upper, step});
}

void Plan::endLoop(uint32_t counter) {
  program[counter].immediate = append(*this, PlanOp::End, {counter, 0, 0});
}

namespace {

class Verifier {
public:
  explicit Verifier(const Plan &plan)
      : plan(plan), isScratch(plan.program.size()),
        isHidden(plan.program.size()) {}

  std::string run();

private:
  std::string checkDeclarations();
  std::string checkOp(const PlanInstruction &instruction);
  std::string checkArgument(const PlanInstruction &instruction);
  std::string checkLaunch(const PlanLaunch &launch);
  std::string checkRegister(uint32_t reg);
  std::string checkNumber(uint32_t reg);
  std::string checkLoop(const PlanInstruction &instruction);
  std::string checkEnd(const PlanInstruction &instruction);

  const Plan &plan;
  std::vector<bool> isScratch; // addresses in scratch memory
  std::vector<bool> isHidden;  // defined in a loop that has ended
  std::vector<uint32_t> loops; // that have not
  size_t current = 0;
};

} // namespace

/// Any register that has been defined.
std::string Verifier::checkRegister(uint32_t reg) {
  if (reg >= current)
    return "register " + std::to_string(reg) + " is used before it is defined";
  if (isHidden[reg])
    return "register " + std::to_string(reg) +
           " is used after the loop that defines it";
  PlanOp op = plan.program[reg].op;
  if (op == PlanOp::Launch || op == PlanOp::Check || op == PlanOp::End)
    return "register " + std::to_string(reg) + " is not defined: instruction " +
           std::to_string(reg) + " is a " + getPlanOpName(op);
  return "";
}

/// A register whose value does not depend on where scratch memory is.
std::string Verifier::checkNumber(uint32_t reg) {
  if (std::string message = checkRegister(reg); !message.empty())
    return message;
  if (isScratch[reg])
    return "expected a number, but register " + std::to_string(reg) +
           " is a scratch address";
  return "";
}

std::string Verifier::checkArgument(const PlanInstruction &instruction) {
  if (instruction.argument >= plan.arguments.size())
    return "argument " + std::to_string(instruction.argument) + " of " +
           std::to_string(plan.arguments.size());
  const PlanArgument &argument = plan.arguments[instruction.argument];
  bool isTensor = argument.kind == PlanArgument::Tensor;
  if (isTensor != (instruction.op != PlanOp::Scalar))
    return std::string("expected a ") + (isTensor ? "scalar" : "tensor") +
           ", but '" + argument.name + "' is a " +
           (isTensor ? "tensor" : "scalar");
  if ((instruction.op == PlanOp::Dim || instruction.op == PlanOp::Stride) &&
      instruction.dimension >= argument.shape.size())
    return "dimension " + std::to_string(instruction.dimension) + " of '" +
           argument.name + "', whose rank is " +
           std::to_string(argument.shape.size());
  return "";
}

std::string Verifier::checkLaunch(const PlanLaunch &launch) {
  if (launch.kernel >= plan.kernels.size())
    return "kernel " + std::to_string(launch.kernel) + " of " +
           std::to_string(plan.kernels.size());
  for (uint32_t reg : launch.grid)
    if (std::string message = checkNumber(reg); !message.empty())
      return message;
  uint64_t bytes = 0;
  for (const PlanParameter &parameter : launch.parameters) {
    if (parameter.bytes != 4 && parameter.bytes != 8)
      return "expected parameters of 4 or 8 bytes, but got " +
             std::to_string(parameter.bytes);
    if (std::string message = parameter.bytes == 4
                                  ? checkNumber(parameter.reg)
                                  : checkRegister(parameter.reg);
        !message.empty())
      return message;
    // Each is aligned to its size.
    bytes = (bytes + parameter.bytes - 1) / parameter.bytes * parameter.bytes +
            parameter.bytes;
  }
  if (bytes > maxParameterBytes)
    return "expected at most " + std::to_string(maxParameterBytes) +
           " bytes of parameters, but got " + std::to_string(bytes);
  return "";
}

std::string Verifier::checkLoop(const PlanInstruction &instruction) {
  for (uint32_t reg : instruction.operands)
    if (std::string message = checkNumber(reg); !message.empty())
      return message;
  loops.push_back(current);
  int64_t end = instruction.immediate;
  if (end > int64_t(current) && end < int64_t(plan.program.size()) &&
      plan.program[end].op == PlanOp::End &&
      plan.program[end].operands[0] == current)
    return "";
  return "expected instruction " + std::to_string(end) + " to end the loop";
}

std::string Verifier::checkEnd(const PlanInstruction &instruction) {
  uint32_t loop = instruction.operands[0];
  if (loops.empty() || loops.back() != loop ||
      plan.program[loop].immediate != int64_t(current))
    return "instruction " + std::to_string(loop) +
           " is not the loop that ends here";
  loops.pop_back();
  std::fill(isHidden.begin() + loop, isHidden.begin() + current, true);
  return "";
}

std::string Verifier::checkOp(const PlanInstruction &instruction) {
  const auto &operands = instruction.operands;
  unsigned numOperands = getNumOperands(instruction.op);
  switch (instruction.op) {
  case PlanOp::Pointer:
  case PlanOp::Dim:
  case PlanOp::Stride:
  case PlanOp::Scalar:
    return checkArgument(instruction);
  case PlanOp::Launch:
    return checkLaunch(instruction.launch);
  case PlanOp::For:
    return checkLoop(instruction);
  case PlanOp::End:
    return checkEnd(instruction);
  case PlanOp::Check:
    if (std::string message = checkRegister(operands[0]); !message.empty())
      return message;
    if (!isScratch[operands[0]])
      return "expected register " + std::to_string(operands[0]) +
             " to be an address in scratch memory";
    for (uint32_t size : {operands[1], operands[2]})
      if (std::string message = checkNumber(size); !message.empty())
        return message;
    return "";
  case PlanOp::Add:
  case PlanOp::Sub:
  case PlanOp::Select: {
    for (unsigned i = 0; i != numOperands; ++i)
      if (std::string message = checkRegister(operands[i]); !message.empty())
        return message;
    bool selects = instruction.op == PlanOp::Select;
    bool first = isScratch[operands[0]], second = isScratch[operands[1]];
    // The condition; the second address of a sum; what is subtracted.
    if (selects ? first : second && (first || instruction.op == PlanOp::Sub))
      return checkNumber(operands[selects ? 0 : 1]);
    isScratch[current] =
        selects ? second || isScratch[operands[2]] : first || second;
    return "";
  }
  case PlanOp::Compare:
    if (unsigned(instruction.predicate) >= numPlanPredicates)
      return "unknown predicate " +
             std::to_string(unsigned(instruction.predicate));
    [[fallthrough]];
  default:
    for (unsigned i = 0; i != numOperands; ++i)
      if (std::string message = checkNumber(operands[i]); !message.empty())
        return message;
    isScratch[current] = instruction.op == PlanOp::Scratch;
    if (isScratch[current] && !loops.empty())
      return "expected scratch memory outside of loops";
    return "";
  }
}

std::string Verifier::checkDeclarations() {
  for (const PlanArgument &argument : plan.arguments) {
    if (argument.kind > PlanArgument::I64)
      return "argument '" + argument.name + "' is of an unknown kind";
    if (argument.kind != PlanArgument::Tensor)
      continue;
    if (argument.elementType.empty())
      return "tensor '" + argument.name + "' has no element type";
    for (int64_t size : argument.shape)
      if (size < -1)
        return "tensor '" + argument.name + "' has a dimension of size " +
               std::to_string(size);
  }
  for (const PlanKernel &kernel : plan.kernels) {
    if (kernel.name.empty())
      return "a kernel has no name";
    if (kernel.threads < 1 || kernel.threads > maxThreads)
      return "kernel '" + kernel.name + "': expected 1 to " +
             std::to_string(maxThreads) + " threads, but got " +
             std::to_string(kernel.threads);
    if (kernel.sharedBytes > maxSharedBytes)
      return "kernel '" + kernel.name + "': expected at most " +
             std::to_string(maxSharedBytes) +
             " bytes of shared memory, but got " +
             std::to_string(kernel.sharedBytes);
  }
  if (plan.program.size() > maxInstructions)
    return "expected at most " + std::to_string(maxInstructions) +
           " instructions, but got " + std::to_string(plan.program.size());
  return "";
}

std::string Verifier::run() {
  if (std::string message = checkDeclarations(); !message.empty())
    return message;
  for (; current != plan.program.size(); ++current) {
    const PlanInstruction &instruction = plan.program[current];
    std::string where = "instruction " + std::to_string(current);
    if (unsigned(instruction.op) >= numPlanOps)
      return where + ": unknown operation " +
             std::to_string(unsigned(instruction.op));
    if (std::string message = checkOp(instruction); !message.empty())
      return where + " (" + getPlanOpName(instruction.op) + "): " + message;
  }
  if (!loops.empty())
    return "the loop of instruction " + std::to_string(loops.back()) +
           " does not end";
  return "";
}

std::string Plan::verify() const { return Verifier(*this).run(); }
