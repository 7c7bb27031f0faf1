//===- CudaModuleText.cpp - The module of a kernel on GPUs ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Kernels/CudaKernel.h"

#include "llvm/ADT/StringExtras.h"

using namespace pisa;

namespace {
using Names = std::vector<std::string>;

/// Prints one function: what calls give are its arguments; what they do not is
/// made inside.
class CudaFunctionPrinter {
public:
  CudaFunctionPrinter(const KernelSpec &spec, const CudaVariant &variant)
      : s(spec), variant(variant), params(printParams(spec.params)) {}

  std::string print();

private:
  bool isWhole() const { return s.functions == AllFunctions; }

  static std::string tensor(llvm::ArrayRef<int64_t> shape, const char *type) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += (size < 0 ? "?" : std::to_string(size)) + "x";
    return text + type + ">";
  }
  /// Declares an argument with the name that calls know; returns "%id".
  std::string argument(const std::string &name, const std::string &type,
                       const std::string &suffix = "") {
    arguments.push_back("%" + name + suffix + ": " + type + " {pisa.name = \"" +
                        name + "\"}");
    return "%" + name + suffix;
  }
  void line(const std::string &text) { body += "  " + text + "\n"; }

  /// Where an op writes `name`: an argument, whose value is returned.
  std::string output(const std::string &name, const std::string &type) {
    results.push_back("%" + name);
    resultTypes.push_back(type);
    return argument(name, type, "_init") + " : " + type;
  }
  /// Where an op writes `name`: scratch memory with these dynamic sizes.
  std::string scratch(const std::string &name, const std::string &type,
                      const Names &sizes) {
    line("%" + name + "_init = tensor.empty(" + llvm::join(sizes, ", ") +
         ") : " + type);
    return "%" + name + "_init : " + type;
  }
  /// The same, scratch in the whole forward pass only.
  std::string between(const std::string &name, const std::string &type,
                      const std::string &size) {
    if (!isWhole())
      return output(name, type);
    return scratch(name, type, {"%batch", getSize(size)});
  }
  /// A size that the host gives.
  std::string getSize(const std::string &name) {
    if (!llvm::is_contained(sizes, name)) {
      argument(name, "index");
      sizes.push_back(name);
    }
    return "%" + name;
  }
  void op(const Names &values, const std::string &text, const Names &types) {
    line("%" + llvm::join(values, ", %") + " = " + text + " -> " +
         llvm::join(types, ", "));
  }

  void printLengths();
  void printBuild();
  void printRoute();
  void printAttention();
  std::string printPositions() const {
    std::string text = " k_len(%k_len : " + perBatch + ")";
    if (s.hasQStart)
      text += " q_start(%q_start : " + perBatch + ")";
    return text + " scale(%scale)";
  }

  const KernelSpec &s;
  const CudaVariant &variant;
  std::string params;
  Names arguments, results, resultTypes, sizes;
  std::string body;

  const char *element = getName(s.dtype);
  const char *summary = getName(s.getSummaryType());
  std::string qType = tensor({-1, s.heads, -1, s.headDim}, element);
  std::string kType = tensor({-1, s.kvHeads, -1, s.headDim}, element);
  std::string vType = tensor({-1, s.kvHeads, -1, s.valueDim}, element);
  std::string outType = tensor({-1, s.heads, -1, s.valueDim}, element);
  std::string pyramidType = tensor({-1, s.kvHeads, -1, s.headDim}, summary);
  std::string atomsType =
      tensor({-1, s.kvHeads, -1, s.params.leafAtoms, s.headDim}, summary);
  std::string outlierType = tensor({-1, s.kvHeads, -1}, "i32");
  std::string listType = tensor(
      {-1, s.kvHeads, -1,
       s.functions & AttentionFunction ? s.listWidth : s.params.topk},
      "i32");
  std::string perBatch = tensor({-1}, "i32");
};
} // namespace

/// Defines %batch, %k_len and, where queries have positions, %q_start.
void CudaFunctionPrinter::printLengths() {
  bool positions = s.hasQStart && (s.functions & ~BuildPyramidFunction);
  if (variant.kLen)
    argument("k_len", perBatch);
  if (positions && variant.qStart)
    argument("q_start", perBatch);
  line("%c0 = arith.constant 0 : index");
  line("%c2 = arith.constant 2 : index");
  line("%batch = tensor.dim %k, %c0 : " + kType);
  line("%keys = tensor.dim %k, %c2 : " + kType);
  auto fill = [&](const std::string &name, const std::string &value) {
    line("%" + name + "_i32 = arith.index_cast " + value + " : index to i32");
    line("%" + name + "_init = tensor.empty(%batch) : " + perBatch);
    line("%" + name + " = linalg.fill ins(%" + name + "_i32 : i32) outs(%" +
         name + "_init : " + perBatch + ") -> " + perBatch);
  };
  if (!variant.kLen)
    fill("k_len", "%keys");
  if (!positions || variant.qStart)
    return;
  // The last query stands at the last key.
  line("%queries = tensor.dim %q, %c2 : " + qType);
  if (!variant.kLen) {
    line("%first = arith.subi %keys, %queries : index");
    return fill("q_start", "%first");
  }
  line("%queries_i32 = arith.index_cast %queries : index to i32");
  line("%q_start_init = tensor.empty(%batch) : " + perBatch);
  line("%q_start = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, "
       "affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]} "
       "ins(%k_len : " +
       perBatch + ") outs(%q_start_init : " + perBatch + ") {");
  line("^bb0(%length: i32, %old: i32):");
  line("  %start = arith.subi %length, %queries_i32 : i32");
  line("  linalg.yield %start : i32");
  line("} -> " + perBatch);
}

void CudaFunctionPrinter::printBuild() {
  Names values = {"pyramid"}, types = {pyramidType};
  std::string text = "pisa.build_pyramid " + params + " ins(%k : " + kType +
                     ") k_len(%k_len : " + perBatch + ") outs(" +
                     between("pyramid", pyramidType, "rows") + ")";
  if (s.wantOpenSums) {
    std::string type = tensor({-1, s.kvHeads, -1, s.headDim}, "f32");
    text += " open_sums(" + output("open_sums", type) + ")";
    values.push_back("open_sums");
    types.push_back(type);
  }
  if (s.usesAtoms()) {
    text += " atoms(" + between("atoms", atomsType, "leaves") + ") outlier(" +
            between("outlier", outlierType, "leaves") + ")";
    values.insert(values.end(), {"atoms", "outlier"});
    types.insert(types.end(), {atomsType, outlierType});
  }
  op(values, text, types);
}

void CudaFunctionPrinter::printRoute() {
  if (!isWhole()) {
    argument("pyramid", pyramidType);
    if (s.usesAtoms()) {
      argument("atoms", atomsType);
      argument("outlier", outlierType);
    }
  }
  Names values = {"indices"}, types = {listType};
  std::string text = "pisa.route " + params + " ins(%q, %k, %pyramid : " +
                     qType + ", " + kType + ", " + pyramidType + ")";
  if (s.usesAtoms())
    text += " atoms(%atoms, %outlier : " + atomsType + ", " + outlierType + ")";
  text += printPositions() + " outs(" +
          (isWhole() && !variant.indices
               ? scratch("indices", listType,
                         {"%batch", getSize("query_blocks")})
               : output("indices", listType)) +
          ")";
  if (s.wantCount) {
    std::string type = tensor({-1, s.kvHeads, -1}, "i32");
    text += " count(" + output("count", type) + ")";
    values.push_back("count");
    types.push_back(type);
  }
  if (s.wantScores) {
    std::string type = tensor({-1, s.kvHeads, -1, s.params.topk}, "f32");
    text += " scores(" + output("scores", type) + ")";
    values.push_back("scores");
    types.push_back(type);
  }
  op(values, text, types);
}

void CudaFunctionPrinter::printAttention() {
  if (!isWhole())
    argument("indices", listType);
  Names values = {"out"}, types = {outType};
  std::string text = "pisa.attention " + params +
                     " ins(%q, %k, %v, %indices : " + qType + ", " + kType +
                     ", " + vType + ", " + listType + ")" + printPositions() +
                     " outs(" + output("out", outType) + ")";
  if (s.wantLse) {
    std::string type = tensor({-1, s.heads, -1}, "f32");
    text += " lse(" + output("lse", type) + ")";
    values.push_back("lse");
    types.push_back(type);
  }
  op(values, text, types);
}

std::string CudaFunctionPrinter::print() {
  bool asks = s.functions & ~BuildPyramidFunction;
  if (asks)
    argument("q", qType);
  argument("k", kType);
  if (s.functions & AttentionFunction)
    argument("v", vType);
  if (asks)
    argument("scale", "f32");
  printLengths();
  if (s.functions & BuildPyramidFunction)
    printBuild();
  if (s.functions & RouteFunction)
    printRoute();
  if (s.functions & AttentionFunction)
    printAttention();
  return "func.func @" + std::string(cudaFunctionName) + "(" +
         llvm::join(arguments, ", ") + ") -> (" +
         llvm::join(resultTypes, ", ") + ") {\n" + body + "  return " +
         llvm::join(results, ", ") + " : " + llvm::join(resultTypes, ", ") +
         "\n}\n";
}

std::string pisa::printCudaModule(const KernelSpec &spec,
                                  const CudaVariant &variant) {
  return CudaFunctionPrinter(spec, variant).print();
}
