//===- PlanTest.cpp - Programs of the host ----------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/Plan.h"

#include "gtest/gtest.h"

#include <climits>
#include <functional>

using namespace pisa;

namespace {

PlanArgument tensor(const char *name, std::vector<int64_t> shape) {
  return {PlanArgument::Tensor, name, "bf16", std::move(shape)};
}

/// The registers after a run, or the error's message.
struct Outcome {
  std::vector<int64_t> registers;
  int64_t scratchBytes = 0;
  std::string error;
};

Outcome evaluate(const Plan &plan, std::vector<ArgumentValue> arguments = {},
                 uint64_t scratchBase = 0) {
  EXPECT_EQ(plan.verify(), "");
  Outcome outcome;
  outcome.registers.resize(plan.program.size());
  std::vector<uint32_t> faults(plan.program.size());
  RuntimeStatus status = evaluatePlan(plan, arguments.data(), scratchBase,
                                      outcome.registers.data(), faults.data(),
                                      outcome.scratchBytes);
  if (status.failed()) {
    EXPECT_EQ(status.getKind(), RuntimeStatus::InvalidValue);
    outcome.error = status.getMessage();
  }
  return outcome;
}

/// What an operation gives; the error where its result has a use.
Outcome evaluateBinary(PlanOp op, int64_t lhs, int64_t rhs) {
  Plan plan;
  plan.kernels = {{"f", 32, 0}};
  uint32_t result =
      plan.addBinary(op, plan.addConstant(lhs), plan.addConstant(rhs));
  uint32_t one = plan.addConstant(1);
  plan.addLaunch({0, {one, one, one}, {{result, 8}}});
  return evaluate(plan);
}

TEST(Plan, Arithmetic) {
  struct Case {
    PlanOp op;
    int64_t lhs, rhs, expected;
  };
  for (Case c : std::initializer_list<Case>{
           {PlanOp::Add, 3, -5, -2},
           {PlanOp::Sub, 3, -5, 8},
           {PlanOp::Mul, 3, -5, -15},
           {PlanOp::DivS, -7, 2, -3},
           {PlanOp::DivS, 7, -2, -3},
           {PlanOp::DivU, -1, 2, INT64_MAX},
           {PlanOp::FloorDivS, -7, 2, -4},
           {PlanOp::FloorDivS, 7, -2, -4},
           {PlanOp::FloorDivS, 7, 2, 3},
           {PlanOp::FloorDivS, -7, -2, 3},
           {PlanOp::FloorDivS, -8, 2, -4},
           {PlanOp::CeilDivS, -7, 2, -3},
           {PlanOp::CeilDivS, 7, 2, 4},
           {PlanOp::CeilDivS, -7, -2, 4},
           {PlanOp::CeilDivS, 8, 2, 4},
           {PlanOp::RemS, -7, 2, -1},
           {PlanOp::RemS, 7, -2, 1},
           {PlanOp::RemU, -1, 10, 5},
           {PlanOp::MinS, -1, 2, -1},
           {PlanOp::MaxS, -1, 2, 2},
           {PlanOp::MinU, -1, 2, 2},
           {PlanOp::MaxU, -1, 2, -1},
           {PlanOp::And, 12, 10, 8},
           {PlanOp::Or, 12, 10, 14},
           {PlanOp::Xor, 12, 10, 6},
           {PlanOp::Shl, -3, 4, -48},
           {PlanOp::Shl, 1, 62, int64_t(1) << 62},
           {PlanOp::ShrS, -16, 2, -4},
           {PlanOp::ShrU, -1, 63, 1},
       }) {
    Outcome outcome = evaluateBinary(c.op, c.lhs, c.rhs);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.registers[2], c.expected)
        << getPlanOpName(c.op) << " " << c.lhs << ", " << c.rhs;
  }
}

TEST(Plan, NoResult) {
  struct Case {
    PlanOp op;
    int64_t lhs, rhs;
    const char *expected;
  };
  for (Case c : std::initializer_list<Case>{
           {PlanOp::Add, INT64_MAX, 1, "an overflow"},
           {PlanOp::Sub, INT64_MIN, 1, "an overflow"},
           {PlanOp::Mul, int64_t(1) << 32, int64_t(1) << 31, "an overflow"},
           {PlanOp::DivS, 1, 0, "a division by zero"},
           {PlanOp::DivU, 1, 0, "a division by zero"},
           {PlanOp::FloorDivS, 1, 0, "a division by zero"},
           {PlanOp::CeilDivS, 1, 0, "a division by zero"},
           {PlanOp::RemS, 1, 0, "a division by zero"},
           {PlanOp::RemU, 1, 0, "a division by zero"},
           {PlanOp::DivS, INT64_MIN, -1, "an overflow"},
           {PlanOp::FloorDivS, INT64_MIN, -1, "an overflow"},
           {PlanOp::CeilDivS, INT64_MIN, -1, "an overflow"},
           {PlanOp::RemS, INT64_MIN, -1, "an overflow"},
           {PlanOp::Shl, 1, 63, "an overflow"},
           {PlanOp::Shl, 1, 64, "an overflow"},
           {PlanOp::Shl, 1, -1, "an overflow"},
           {PlanOp::ShrS, 1, 64, "an overflow"},
           {PlanOp::ShrU, 1, -1, "an overflow"},
       }) {
    std::string error = evaluateBinary(c.op, c.lhs, c.rhs).error;
    EXPECT_EQ(error.find("parameter 0 of kernel 'f' comes from " +
                         std::string(c.expected)),
              0u)
        << error;
    EXPECT_NE(error.find(getPlanOpName(c.op)), std::string::npos) << error;
  }
}

TEST(Plan, SelectDropsWhatHasNoResult) {
  for (int64_t divisor : {0, 4}) {
    Plan plan;
    plan.kernels = {{"f", 32, 0}};
    uint32_t zero = plan.addConstant(0), eight = plan.addConstant(8);
    uint32_t by = plan.addConstant(divisor);
    uint32_t quotient = plan.addBinary(PlanOp::DivS, eight, by);
    uint32_t further = plan.addBinary(PlanOp::Add, quotient, eight);
    uint32_t isZero = plan.addCompare(PlanPredicate::Eq, by, zero);
    uint32_t chosen = plan.addSelect(isZero, eight, further);
    plan.addLaunch({0, {chosen, eight, eight}, {}});
    Outcome outcome = evaluate(plan);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.registers[chosen], divisor == 0 ? 8 : 10);
  }
}

TEST(Plan, Compare) {
  using P = PlanPredicate;
  auto compare = [](P predicate, int64_t lhs, int64_t rhs) {
    Plan plan;
    plan.addCompare(predicate, plan.addConstant(lhs), plan.addConstant(rhs));
    return evaluate(plan).registers[2];
  };
  // -1 is the largest unsigned number.
  P lessSigned[] = {P::Ne, P::SLt, P::SLe, P::UGt, P::UGe};
  P notSigned[] = {P::Eq, P::SGt, P::SGe, P::ULt, P::ULe};
  P equal[] = {P::Eq, P::SLe, P::SGe, P::ULe, P::UGe};
  P notEqual[] = {P::Ne, P::SLt, P::SGt, P::ULt, P::UGt};
  for (P predicate : lessSigned)
    EXPECT_EQ(compare(predicate, -1, 2), 1) << getPlanPredicateName(predicate);
  for (P predicate : notSigned)
    EXPECT_EQ(compare(predicate, -1, 2), 0) << getPlanPredicateName(predicate);
  for (P predicate : equal)
    EXPECT_EQ(compare(predicate, 2, 2), 1) << getPlanPredicateName(predicate);
  for (P predicate : notEqual)
    EXPECT_EQ(compare(predicate, 2, 2), 0) << getPlanPredicateName(predicate);
}

TEST(Plan, ReadsArguments) {
  Plan plan;
  plan.arguments = {tensor("q", {-1, 3, 5}),
                    {PlanArgument::F32, "scale", "", {}},
                    {PlanArgument::I32, "n", "", {}},
                    {PlanArgument::I64, "m", "", {}}};
  plan.addArgument(PlanOp::Pointer, 0);
  for (uint32_t i : {0, 1, 2})
    plan.addArgument(PlanOp::Dim, 0, i);
  for (uint32_t i : {0, 1, 2})
    plan.addArgument(PlanOp::Stride, 0, i);
  for (uint32_t i : {1, 2, 3})
    plan.addArgument(PlanOp::Scalar, i);
  int64_t shape[] = {7, 3, 5}, strides[] = {100, -20, 2};
  // Junk above the 32 bits does not matter.
  std::vector<ArgumentValue> values = {
      ArgumentValue::tensor(reinterpret_cast<void *>(0x1234), shape, strides),
      ArgumentValue::scalar(0x1.0p-1f),
      ArgumentValue::scalar(uint64_t(0x55555555fffffffe)),
      ArgumentValue::scalar(uint64_t(1) << 40)};
  EXPECT_EQ(evaluate(plan, values).registers,
            (std::vector<int64_t>{0x1234, 7, 3, 5, 100, -20, 2, 0x3f000000, -2,
                                  int64_t(1) << 40}));
  values[0].strides = nullptr;
  EXPECT_EQ(evaluate(plan, values).registers,
            (std::vector<int64_t>{0x1234, 7, 3, 5, 15, 5, 1, 0x3f000000, -2,
                                  int64_t(1) << 40}));

  EXPECT_FALSE(checkArguments(plan, values.data()).failed());
  shape[2] = 4;
  EXPECT_EQ(checkArguments(plan, values.data()).getMessage(),
            "'q': expected dimension 2 to be 5, but got 4");
  shape[2] = 5;
  shape[0] = -1;
  EXPECT_EQ(checkArguments(plan, values.data()).getMessage(),
            "'q': expected dimension 0 to be at least 0, but got -1");
}

TEST(Plan, Scratch) {
  Plan plan;
  uint32_t parts[5];
  int64_t sizes[] = {1, 0, 256, 257, 1000};
  for (unsigned i = 0; i != 5; ++i)
    parts[i] = plan.addScratch(plan.addConstant(sizes[i]));
  Outcome outcome = evaluate(plan, {}, 0x10000);
  EXPECT_EQ(outcome.scratchBytes, 256 + 0 + 256 + 512 + 1024);
  int64_t expected[] = {0x10000, 0x10100, 0x10100, 0x10200, 0x10400};
  for (unsigned i = 0; i != 5; ++i)
    EXPECT_EQ(outcome.registers[parts[i]], expected[i]);
}

TEST(Plan, ScratchOfAbsurdSize) {
  for (int64_t size : {int64_t(-1), INT64_MIN, INT64_MAX, int64_t(1) << 49}) {
    Plan plan;
    plan.addScratch(plan.addConstant(size));
    EXPECT_EQ(
        evaluate(plan).error,
        "expected 0 to 281474976710656 bytes of scratch memory, but got " +
            std::to_string(size) + " in instruction 1");
  }
  // Each is possible, all together are not.
  Plan many;
  uint32_t size = many.addConstant(int64_t(1) << 47);
  for (int i = 0; i != 3; ++i)
    many.addScratch(size);
  EXPECT_NE(evaluate(many).error, "");

  // 2^62 * 6 wraps to a small number.
  Plan product;
  uint32_t large = product.addConstant(int64_t(1) << 62);
  uint32_t bytes =
      product.addBinary(PlanOp::Mul, large, product.addConstant(6));
  product.addScratch(bytes);
  EXPECT_EQ(evaluate(product).error, "the size of scratch memory comes from an "
                                     "overflow of 64 bits in instruction 2 "
                                     "(mul)");
}

TEST(Plan, Grid) {
  auto launch = [](int64_t x, int64_t y, int64_t z) {
    Plan plan;
    plan.kernels = {{"f", 32, 0}};
    uint32_t gridX = plan.addConstant(x), gridY = plan.addConstant(y);
    plan.addLaunch({0, {gridX, gridY, plan.addConstant(z)}, {}});
    return evaluate(plan).error;
  };
  EXPECT_EQ(launch(1, 1, 1), "");
  EXPECT_EQ(launch(0, 0, 0), "");
  EXPECT_EQ(launch(INT32_MAX, 65535, 65535), "");
  EXPECT_EQ(launch(-1, 1, 1), "kernel 'f': expected a grid of 0 to 2147483647 "
                              "in dimension 0, but got -1");
  EXPECT_NE(launch(int64_t(1) << 31, 1, 1), "");
  EXPECT_NE(launch(int64_t(1) << 32, 1, 1), "");
  EXPECT_EQ(launch(1, 65536, 1), "kernel 'f': expected a grid of 0 to 65535 in "
                                 "dimension 1, but got 65536");
  EXPECT_NE(launch(1, 1, 65536), "");
}

TEST(Plan, Parameters) {
  auto pass = [](int64_t value) {
    Plan plan;
    plan.kernels = {{"f", 32, 0}};
    uint32_t one = plan.addConstant(1);
    uint32_t reg = plan.addConstant(value);
    plan.addLaunch({0, {one, one, one}, {{reg, 8}, {reg, 4}}});
    return evaluate(plan).error;
  };
  for (int64_t value : {int64_t(0), int64_t(-1), int64_t(INT32_MIN),
                        int64_t(INT32_MAX), int64_t(UINT32_MAX)})
    EXPECT_EQ(pass(value), "");
  EXPECT_EQ(pass(int64_t(1) << 32),
            "kernel 'f': parameter 1 has 32 bits, but is 4294967296");
  EXPECT_NE(pass(int64_t(INT32_MIN) - 1), "");
}

//===----------------------------------------------------------------------===//
// Verification and JSON
//===----------------------------------------------------------------------===//

/// A plan with one of everything.
Plan makePlan() {
  Plan plan;
  plan.name = "attend \"\xc3\xa9\"";
  plan.arguments = {tensor("q", {-1, 64}),
                    {PlanArgument::F32, "scale", "", {}},
                    {PlanArgument::I32, "n", "", {}},
                    {PlanArgument::I64, "m", "", {}}};
  plan.kernels = {{"first", 128, 0}, {"second", 1024, 200000}};
  uint32_t q = plan.addArgument(PlanOp::Pointer, 0);        // 0
  uint32_t rows = plan.addArgument(PlanOp::Dim, 0, 0);      // 1
  uint32_t stride = plan.addArgument(PlanOp::Stride, 0, 1); // 2
  uint32_t scale = plan.addArgument(PlanOp::Scalar, 1);     // 3
  uint32_t least = plan.addConstant(INT64_MIN);             // 4
  uint32_t most = plan.addConstant(INT64_MAX);              // 5
  for (unsigned op = unsigned(PlanOp::Add); op <= unsigned(PlanOp::ShrU); ++op)
    plan.addBinary(PlanOp(op), rows, stride);
  uint32_t condition = 0;
  for (unsigned i = 0; i != numPlanPredicates; ++i)
    condition = plan.addCompare(PlanPredicate(i), rows, stride);
  uint32_t size = plan.addSelect(condition, rows, stride);
  uint32_t scratch = plan.addScratch(size);
  uint32_t inside = plan.addBinary(PlanOp::Add, scratch, rows);
  plan.addLaunch(
      {0, {rows, size, condition}, {{q, 8}, {inside, 8}, {scale, 4}}});
  plan.addLaunch({1, {least, most, rows}, {}});
  return plan;
}

TEST(Plan, JsonRoundTrip) {
  Plan plan = makePlan();
  ASSERT_EQ(plan.verify(), "");
  std::string text = plan.toJson();
  RuntimeOr<Plan> read = Plan::fromJson(text);
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->toJson(), text);
  EXPECT_EQ(read->name, plan.name);
  ASSERT_EQ(read->arguments.size(), 4u);
  EXPECT_EQ(read->arguments[0].shape, plan.arguments[0].shape);
  EXPECT_EQ(read->arguments[0].elementType, "bf16");
  EXPECT_EQ(read->arguments[3].kind, PlanArgument::I64);
  ASSERT_EQ(read->program.size(), plan.program.size());
  EXPECT_EQ(read->program[4].immediate, INT64_MIN);
  EXPECT_EQ(read->program[5].immediate, INT64_MAX);
  const PlanLaunch &launch = read->program[read->program.size() - 2].launch;
  ASSERT_EQ(launch.parameters.size(), 3u);
  EXPECT_EQ(launch.parameters[2].bytes, 4u);
  EXPECT_EQ(read->kernels[1].sharedBytes, 200000u);
}

TEST(Plan, JsonOfChecks) {
  Plan plan;
  uint32_t size = plan.addConstant(8);
  plan.addCheck(plan.addScratch(size), size, size);
  RuntimeOr<Plan> read = Plan::fromJson(plan.toJson());
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->program[2].op, PlanOp::Check);
  EXPECT_EQ(read->program[2].operands, plan.program[2].operands);
  EXPECT_EQ(read->toJson(), plan.toJson());
}

TEST(Plan, CheckOfOverflow) {
  Plan plan;
  uint32_t most = plan.addConstant(INT64_MAX);
  uint32_t size = plan.addBinary(PlanOp::Add, most, most);
  plan.addCheck(plan.addScratch(plan.addConstant(8)), most, size);
  EXPECT_EQ(evaluate(plan).error,
            "an operand of a check comes from an overflow "
            "of 64 bits in instruction 1 (add)");
}

/// Notes the first register of each launch's grid.
struct Notes : PlanVisitor {
  std::vector<int64_t> grids;
  RuntimeStatus visit(const PlanInstruction &instruction,
                      int64_t *registers) override {
    grids.push_back(registers[instruction.launch.grid[0]]);
    return {};
  }
};

/// for i in [lower, upper) by step: for j in [0, i): launch (10 i + j).
Plan makeLoops(int64_t lower, int64_t upper, int64_t step) {
  Plan plan;
  plan.kernels = {{"f", 32, 0}};
  uint32_t zero = plan.addConstant(0), one = plan.addConstant(1);
  uint32_t i = plan.beginLoop(plan.addConstant(lower), plan.addConstant(upper),
                              plan.addConstant(step));
  uint32_t j = plan.beginLoop(zero, i, one);
  uint32_t ten = plan.addConstant(10);
  uint32_t number =
      plan.addBinary(PlanOp::Add, plan.addBinary(PlanOp::Mul, i, ten), j);
  plan.addLaunch({0, {number, one, one}, {}});
  plan.endLoop(j);
  plan.endLoop(i);
  plan.addLaunch({0, {one, one, one}, {}});
  return plan;
}

std::string visitAll(const Plan &plan, Notes &notes) {
  EXPECT_EQ(plan.verify(), "");
  std::vector<int64_t> registers(plan.program.size());
  std::vector<uint32_t> faults(plan.program.size());
  int64_t scratchBytes = 0;
  return evaluatePlan(plan, nullptr, 0, registers.data(), faults.data(),
                      scratchBytes, &notes)
      .getMessage();
}

TEST(Plan, Loops) {
  Notes notes;
  EXPECT_EQ(visitAll(makeLoops(0, 4, 2), notes), "");
  // The inner loop has no steps where i is 0.
  EXPECT_EQ(notes.grids, (std::vector<int64_t>{20, 21, 1}));
  notes.grids.clear();
  EXPECT_EQ(visitAll(makeLoops(1, 4, 5), notes), "");
  EXPECT_EQ(notes.grids, (std::vector<int64_t>{10, 1}));
  notes.grids.clear();
  EXPECT_EQ(visitAll(makeLoops(4, 4, 1), notes), "");
  EXPECT_EQ(notes.grids, (std::vector<int64_t>{1}));
}

TEST(Plan, LoopsWithoutEnd) {
  Notes notes;
  EXPECT_EQ(visitAll(makeLoops(0, 4, 0), notes),
            "expected a loop to have a positive step, but got 0 in "
            "instruction 5");
  EXPECT_EQ(visitAll(makeLoops(0, 4, -1), notes),
            "expected a loop to have a positive step, but got -1 in "
            "instruction 5");
  EXPECT_EQ(visitAll(makeLoops(0, int64_t(1) << 40, 2), notes),
            "expected a loop of at most 2147483647 steps, but got one from 0 "
            "to 1099511627776 by 2 in instruction 5");
  EXPECT_NE(visitAll(makeLoops(INT64_MIN, INT64_MAX, 1), notes), "");
  EXPECT_NE(visitAll(makeLoops(INT64_MAX - 1, INT64_MAX, 5), notes), "");
  EXPECT_TRUE(notes.grids.empty());
}

TEST(Plan, RangeOfOverflow) {
  Plan plan;
  uint32_t most = plan.addConstant(INT64_MAX);
  uint32_t sum = plan.addBinary(PlanOp::Add, most, most);
  plan.endLoop(plan.beginLoop(most, sum, most));
  EXPECT_EQ(evaluate(plan).error, "the range of a loop comes from an overflow "
                                  "of 64 bits in instruction 1 (add)");
}

TEST(Plan, JsonOfLoops) {
  Plan plan = makeLoops(0, 4, 2);
  std::string text = plan.toJson();
  RuntimeOr<Plan> read = Plan::fromJson(text);
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->toJson(), text);
  Notes notes;
  EXPECT_EQ(visitAll(*read, notes), "");
  EXPECT_EQ(notes.grids, (std::vector<int64_t>{20, 21, 1}));
  for (const char *end : {"0", "5", "11", "99", "-1", "\"x\""}) {
    std::string spoilt = text;
    size_t at = spoilt.find("\"end\": 12");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_FALSE(
        Plan::fromJson(spoilt.replace(at, 9, std::string("\"end\": ") + end)))
        << end;
  }
}

TEST(Plan, RefusedLoops) {
  auto expectRefused = [](const std::function<void(Plan &)> &build,
                          const char *expected) {
    Plan plan;
    plan.kernels = {{"f", 32, 0}};
    plan.addConstant(1); // register 0
    build(plan);
    EXPECT_NE(plan.verify().find(expected), std::string::npos) << plan.verify();
  };
  expectRefused([](Plan &p) { p.beginLoop(0, 0, 0); }, "to end the loop");
  expectRefused(
      [](Plan &p) {
        p.endLoop(p.beginLoop(0, 0, 0));
        p.program[1].immediate = 0;
      },
      "expected instruction 0 to end the loop");
  expectRefused(
      [](Plan &p) {
        uint32_t outer = p.beginLoop(0, 0, 0), inner = p.beginLoop(0, 0, 0);
        p.endLoop(outer);
        p.endLoop(inner);
      },
      "is not the loop that ends here");
  expectRefused(
      [](Plan &p) {
        uint32_t i = p.beginLoop(0, 0, 0);
        p.endLoop(i);
        p.addLaunch({0, {i, 0, 0}, {}});
      },
      "register 1 is used after the loop that defines it");
  expectRefused(
      [](Plan &p) {
        uint32_t i = p.beginLoop(0, 0, 0);
        p.addScratch(i);
        p.endLoop(i);
      },
      "expected scratch memory outside of loops");
  expectRefused(
      [](Plan &p) {
        uint32_t i = p.beginLoop(0, 0, 0);
        p.endLoop(i);
        p.addLaunch({0, {2, 0, 0}, {}});
      },
      "register 2 is");
}

TEST(Plan, JsonOfOthers) {
  std::string good = makePlan().toJson();
  auto refuse = [&](const std::string &text, const char *expected) {
    RuntimeOr<Plan> plan = Plan::fromJson(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.getStatus().getKind(), RuntimeStatus::InvalidValue);
    EXPECT_NE(plan.getStatus().getMessage().find(expected), std::string::npos)
        << plan.getStatus().getMessage();
  };
  auto change = [&](const std::string &from, const std::string &to,
                    const char *expected) {
    std::string text = good;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    refuse(text.replace(at, from.size(), to), expected);
  };
  refuse("", "expected JSON");
  refuse("{", "expected JSON");
  refuse("[]", "expected 'version'");
  refuse("null", "expected 'version'");
  for (size_t length = 0; length < good.size(); length += 97)
    refuse(good.substr(0, length), "expected JSON");
  change("\"version\": 1", "\"version\": 2", "'version' to be an integer");
  change("\"version\": 1", "\"version\": 1.5", "'version' to be an integer");
  change("\"kind\": \"f32\"", "\"kind\": \"f64\"", "unknown 'kind': 'f64'");
  change("\"op\": \"dim\"", "\"op\": 3", "'op' to be a string");
  change("\"op\": \"dim\"", "\"op\": \"jump\"",
         "instruction 1: unknown 'op': 'jump'");
  change("\"threads\": 128", "\"threads\": -1", "'threads' to be an integer");
  change("\"threads\": 128", "\"threads\": 4294967424", "'threads'");
  change("\"threads\": 128", "\"threads\": 99999999999999999999", "'threads'");
  change("9223372036854775807", "9223372036854775808", "'value'");
  change("\"argument\": 0", "\"argument\": 9", "argument 9 of 4");
  change("\"predicate\": \"eq\"", "\"predicate\": null", "'predicate'");
  change("\"program\": [", "\"program\": [7,", "instruction 0: expected 'op'");
  change("\"grid\"", "\"grit\"", "expected 'grid'");
}

TEST(Plan, Refused) {
  auto expectRefused = [](const std::function<void(Plan &)> &spoil,
                          const char *expected) {
    Plan plan = makePlan();
    spoil(plan);
    EXPECT_NE(plan.verify().find(expected), std::string::npos) << plan.verify();
  };
  auto launchOf = [](Plan &plan) -> PlanLaunch & {
    return plan.program[plan.program.size() - 2].launch;
  };
  uint32_t scratch = makePlan().program.size() - 4;
  uint32_t launch = makePlan().program.size() - 1;
  expectRefused([](Plan &p) { p.kernels[0].threads = 0; }, "1 to 1024 threads");
  expectRefused([](Plan &p) { p.kernels[0].threads = 1025; },
                "1 to 1024 threads");
  expectRefused([](Plan &p) { p.kernels[0].name.clear(); }, "has no name");
  expectRefused([](Plan &p) { p.kernels[0].sharedBytes = -1; },
                "bytes of shared memory");
  expectRefused([](Plan &p) { p.arguments[0].shape[0] = -2; },
                "a dimension of size -2");
  expectRefused([](Plan &p) { p.arguments[0].elementType.clear(); },
                "no element type");
  expectRefused([](Plan &p) { p.program[0].argument = 4; }, "argument 4 of 4");
  expectRefused([](Plan &p) { p.program[0].argument = 1; },
                "expected a tensor, but 'scale' is a scalar");
  expectRefused([](Plan &p) { p.program[3].argument = 0; },
                "expected a scalar, but 'q' is a tensor");
  expectRefused([](Plan &p) { p.program[1].dimension = 2; },
                "dimension 2 of 'q', whose rank is 2");
  expectRefused([](Plan &p) { p.program[6].operands[1] = 6; },
                "instruction 6 (add): register 6 is used before it is defined");
  expectRefused([](Plan &p) { p.program[6].op = PlanOp(200); },
                "unknown operation 200");
  expectRefused([&](Plan &p) { launchOf(p).kernel = 2; }, "kernel 2 of 2");
  expectRefused([&](Plan &p) { launchOf(p).grid[2] = launch; },
                "used before it is defined");
  expectRefused([&](Plan &p) { launchOf(p).parameters[0].bytes = 2; },
                "4 or 8 bytes, but got 2");
  expectRefused([&](Plan &p) { launchOf(p).parameters.resize(513); },
                "at most 4096 bytes of parameters, but got");
  expectRefused([&](Plan &p) { launchOf(p).parameters[1].bytes = 4; },
                "is a scratch address");
  expectRefused([&](Plan &p) { launchOf(p).grid[0] = scratch; },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addScratch(scratch); },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addScratch(launch); }, "is a launch");
  expectRefused([&](Plan &p) { p.addBinary(PlanOp::Mul, 1, scratch); },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addBinary(PlanOp::Add, scratch, scratch); },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addBinary(PlanOp::Sub, 1, scratch); },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addSelect(scratch, 1, 2); },
                "is a scratch address");
  expectRefused([&](Plan &p) { p.addCheck(1, 1, 1); },
                "(check): expected register 1 to be an address in scratch");
  expectRefused([&](Plan &p) { p.addCheck(scratch, 1, scratch); },
                "is a scratch address");
  expectRefused(
      [&](Plan &p) {
        p.addCheck(scratch, 1, 1);
        p.addScratch(p.program.size() - 1);
      },
      "is a check");
}

} // namespace
