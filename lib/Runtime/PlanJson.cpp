//===- PlanJson.cpp - Plans as JSON -----------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Runtime/Plan.h"

// Without exceptions, the library ends the process where it would throw: a
// value is read only after its type has been checked.
#include <nlohmann/json.hpp>

using namespace pisa;

using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t formatVersion = 1;

// In the order of PlanArgument::Kind.
constexpr const char *kindNames[] = {"tensor", "f32", "i32", "i64"};

bool readsArgument(PlanOp op) {
  return op == PlanOp::Pointer || op == PlanOp::Dim || op == PlanOp::Stride ||
         op == PlanOp::Scalar;
}

bool readsDimension(PlanOp op) {
  return op == PlanOp::Dim || op == PlanOp::Stride;
}

} // namespace

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Json write(const PlanArgument &argument) {
  Json json = {{"name", argument.name}, {"kind", kindNames[argument.kind]}};
  if (argument.kind == PlanArgument::Tensor) {
    json["element_type"] = argument.elementType;
    json["shape"] = argument.shape;
  }
  return json;
}

static Json write(const PlanInstruction &instruction) {
  PlanOp op = instruction.op;
  Json json = {{"op", getPlanOpName(op)}};
  if (op == PlanOp::Constant)
    json["value"] = instruction.immediate;
  if (op == PlanOp::For)
    json["end"] = instruction.immediate;
  if (readsArgument(op))
    json["argument"] = instruction.argument;
  if (readsDimension(op))
    json["dimension"] = instruction.dimension;
  if (op == PlanOp::Compare)
    json["predicate"] = getPlanPredicateName(instruction.predicate);
  if (unsigned numOperands = getNumOperands(op)) {
    json["operands"] = Json::array();
    for (unsigned i = 0; i != numOperands; ++i)
      json["operands"].push_back(instruction.operands[i]);
  }
  if (op == PlanOp::Launch) {
    json["kernel"] = instruction.launch.kernel;
    json["grid"] = instruction.launch.grid;
    json["parameters"] = Json::array();
    for (const PlanParameter &parameter : instruction.launch.parameters)
      json["parameters"].push_back(
          {{"register", parameter.reg}, {"bytes", parameter.bytes}});
  }
  return json;
}

std::string Plan::toJson() const {
  Json json = {{"version", formatVersion}, {"name", name}};
  json["arguments"] = Json::array();
  for (const PlanArgument &argument : arguments)
    json["arguments"].push_back(write(argument));
  json["kernels"] = Json::array();
  for (const PlanKernel &kernel : kernels)
    json["kernels"].push_back({{"name", kernel.name},
                               {"threads", kernel.threads},
                               {"shared_bytes", kernel.sharedBytes}});
  json["program"] = Json::array();
  for (const PlanInstruction &instruction : program)
    json["program"].push_back(write(instruction));
  return json.dump(1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Reads members of JSON objects; the first error stays.
class Reader {
public:
  RuntimeOr<Plan> read(const std::string &text);

private:
  void fail(const std::string &message) {
    if (error.empty())
      error = where + message;
  }
  const Json *getMember(const Json &object, const char *key) {
    if (object.is_object())
      if (auto it = object.find(key); it != object.end())
        return &*it;
    fail(std::string("expected '") + key + "'");
    return nullptr;
  }
  std::string getString(const Json &object, const char *key);
  int64_t toInteger(const Json &value, const char *key, int64_t min,
                    int64_t max);
  int64_t getInteger(const Json &object, const char *key, int64_t min,
                     int64_t max);
  uint32_t getIndex(const Json &object, const char *key) {
    return getInteger(object, key, 0, UINT32_MAX);
  }
  /// Calls `body` on each element of an array.
  template <typename Body>
  void forEach(const Json &object, const char *key, Body body);
  void getRegisters(const Json &object, const char *key, unsigned count,
                    std::array<uint32_t, 3> &registers);
  unsigned getName(const Json &object, const char *key, unsigned count,
                   const char *(*name)(unsigned));

  PlanArgument readArgument(const Json &json);
  PlanKernel readKernel(const Json &json);
  PlanInstruction readInstruction(const Json &json);

  std::string where, error;
};

} // namespace

std::string Reader::getString(const Json &object, const char *key) {
  const Json *value = getMember(object, key);
  if (!value)
    return "";
  if (!value->is_string()) {
    fail(std::string("expected '") + key + "' to be a string");
    return "";
  }
  return value->get_ref<const std::string &>();
}

int64_t Reader::toInteger(const Json &value, const char *key, int64_t min,
                          int64_t max) {
  bool fits = value.is_number_unsigned()
                  ? value.get<uint64_t>() <= uint64_t(INT64_MAX)
                  : value.is_number_integer();
  int64_t integer = fits ? value.get<int64_t>() : 0;
  if (fits && integer >= min && integer <= max)
    return integer;
  fail(std::string("expected '") + key + "' to be an integer of " +
       std::to_string(min) + " to " + std::to_string(max));
  return 0;
}

int64_t Reader::getInteger(const Json &object, const char *key, int64_t min,
                           int64_t max) {
  const Json *value = getMember(object, key);
  return value ? toInteger(*value, key, min, max) : 0;
}

template <typename Body>
void Reader::forEach(const Json &object, const char *key, Body body) {
  const Json *array = getMember(object, key);
  if (!array)
    return;
  if (!array->is_array())
    return fail(std::string("expected '") + key + "' to be an array");
  for (const Json &element : *array) {
    if (!error.empty())
      return;
    body(element);
  }
}

void Reader::getRegisters(const Json &object, const char *key, unsigned count,
                          std::array<uint32_t, 3> &registers) {
  unsigned found = 0;
  forEach(object, key, [&](const Json &element) {
    uint32_t reg = toInteger(element, key, 0, UINT32_MAX);
    if (found < count)
      registers[found] = reg;
    ++found;
  });
  if (found != count)
    fail(std::string("expected '") + key + "' to have " +
         std::to_string(count) + " elements, but got " + std::to_string(found));
}

/// The number of the name among `count` names.
unsigned Reader::getName(const Json &object, const char *key, unsigned count,
                         const char *(*name)(unsigned)) {
  std::string text = getString(object, key);
  for (unsigned i = 0; i != count; ++i)
    if (text == name(i))
      return i;
  fail(std::string("unknown '") + key + "': '" + text + "'");
  return 0;
}

PlanArgument Reader::readArgument(const Json &json) {
  PlanArgument argument;
  argument.name = getString(json, "name");
  argument.kind =
      PlanArgument::Kind(getName(json, "kind", std::size(kindNames),
                                 [](unsigned i) { return kindNames[i]; }));
  if (argument.kind != PlanArgument::Tensor)
    return argument;
  argument.elementType = getString(json, "element_type");
  forEach(json, "shape", [&](const Json &size) {
    argument.shape.push_back(toInteger(size, "shape", -1, INT64_MAX));
  });
  return argument;
}

PlanKernel Reader::readKernel(const Json &json) {
  PlanKernel kernel;
  kernel.name = getString(json, "name");
  kernel.threads = getIndex(json, "threads");
  kernel.sharedBytes = getIndex(json, "shared_bytes");
  return kernel;
}

PlanInstruction Reader::readInstruction(const Json &json) {
  PlanInstruction instruction;
  PlanOp op = instruction.op =
      PlanOp(getName(json, "op", numPlanOps,
                     [](unsigned i) { return getPlanOpName(PlanOp(i)); }));
  if (!error.empty())
    return instruction;
  if (op == PlanOp::Constant)
    instruction.immediate = getInteger(json, "value", INT64_MIN, INT64_MAX);
  if (op == PlanOp::For)
    instruction.immediate = getIndex(json, "end");
  if (readsArgument(op))
    instruction.argument = getIndex(json, "argument");
  if (readsDimension(op))
    instruction.dimension = getIndex(json, "dimension");
  if (op == PlanOp::Compare)
    instruction.predicate = PlanPredicate(
        getName(json, "predicate", numPlanPredicates, [](unsigned i) {
          return getPlanPredicateName(PlanPredicate(i));
        }));
  if (unsigned count = getNumOperands(op))
    getRegisters(json, "operands", count, instruction.operands);
  if (op == PlanOp::Launch) {
    instruction.launch.kernel = getIndex(json, "kernel");
    getRegisters(json, "grid", 3, instruction.launch.grid);
    forEach(json, "parameters", [&](const Json &parameter) {
      uint32_t reg = getIndex(parameter, "register");
      instruction.launch.parameters.push_back(
          {reg, getIndex(parameter, "bytes")});
    });
  }
  return instruction;
}

RuntimeOr<Plan> Reader::read(const std::string &text) {
  Plan plan;
  Json json = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    fail("expected JSON");
  } else {
    getInteger(json, "version", formatVersion, formatVersion);
    plan.name = getString(json, "name");
    forEach(json, "arguments", [&](const Json &element) {
      where = "argument " + std::to_string(plan.arguments.size()) + ": ";
      plan.arguments.push_back(readArgument(element));
    });
    where.clear();
    forEach(json, "kernels", [&](const Json &element) {
      where = "kernel " + std::to_string(plan.kernels.size()) + ": ";
      plan.kernels.push_back(readKernel(element));
    });
    where.clear();
    forEach(json, "program", [&](const Json &element) {
      where = "instruction " + std::to_string(plan.program.size()) + ": ";
      plan.program.push_back(readInstruction(element));
    });
  }
  if (error.empty())
    error = plan.verify();
  if (!error.empty())
    return RuntimeStatus(RuntimeStatus::InvalidValue, "plan: " + error);
  return plan;
}

RuntimeOr<Plan> Plan::fromJson(const std::string &text) {
  return Reader().read(text);
}
