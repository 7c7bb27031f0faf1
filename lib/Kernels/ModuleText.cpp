//===- ModuleText.cpp - The module of a kernel ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Kernels/KernelSpec.h"

#include "llvm/Support/raw_ostream.h"
#include <initializer_list>

using namespace pisa;

const char *pisa::getName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  }
  return "";
}

std::string pisa::printParams(const KernelParams &p) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "#pisa.params<block_size = " << p.blockSize << ", fanout = " << p.fanout
     << ", topk = " << p.topk;
  if (p.beam)
    os << ", beam = " << *p.beam;
  if (p.rerank)
    os << ", rerank = " << *p.rerank;
  os << ", leaf_atoms = " << p.leafAtoms << ", query_block = " << p.queryBlock
     << ", sink_blocks = " << p.sinkBlocks
     << ", local_blocks = " << p.localBlocks
     << ", causal = " << (p.causal ? "true" : "false");
  if (p.summaryDtype)
    os << ", summary_dtype = " << getName(*p.summaryDtype);
  os << ">";
  return text;
}

namespace {
/// Collects a function's arguments as it prints their uses.
class FunctionPrinter {
public:
  /// Declares an argument and returns "%name : type".
  std::string use(const std::string &name, const std::string &type) {
    declare(name, type);
    return "%" + name + " : " + type;
  }
  void declare(const std::string &name, const std::string &type) {
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + type;
  }
  void result(const std::string &type) {
    results += (results.empty() ? "" : ", ") + type;
    ++numResults;
  }
  std::string print(const std::string &name, const std::string &op) const {
    std::string values;
    for (int i = 0; i < numResults; ++i)
      values += (i ? ", %0#" : "%0#") + std::to_string(i);
    return "func.func @" + name + "(" + arguments + ") -> (" + results +
           ") {\n" + "  %0:" + std::to_string(numResults) + " = " + op +
           " -> " + results + "\n  return " + values + " : " + results +
           "\n}\n";
  }

private:
  std::string arguments, results;
  int numResults = 0;
};
} // namespace

std::string pisa::printModule(const KernelSpec &s) {
  const KernelParams &p = s.params;
  std::string params = printParams(p);
  std::string element = getName(s.dtype);
  std::string summary = getName(s.getSummaryType());
  auto tensor = [](std::initializer_list<int64_t> shape,
                   const std::string &type) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += (size < 0 ? "?" : std::to_string(size)) + "x";
    return text + type + ">";
  };
  std::string qType = tensor({-1, s.heads, -1, s.headDim}, element);
  std::string kType = tensor({-1, s.kvHeads, -1, s.headDim}, element);
  std::string vType = tensor({-1, s.kvHeads, -1, s.valueDim}, element);
  std::string oType = tensor({-1, s.heads, -1, s.valueDim}, element);
  std::string pyramidType = tensor({-1, s.kvHeads, -1, s.headDim}, summary);
  std::string atomsType =
      tensor({-1, s.kvHeads, -1, p.leafAtoms, s.headDim}, summary);
  std::string outlierType = tensor({-1, s.kvHeads, -1}, "i32");
  std::string perBatch = tensor({-1}, "i32");

  std::string text;
  if (s.functions & BuildPyramidFunction) {
    FunctionPrinter f;
    std::string op = "pisa.build_pyramid " + params + " ins(" +
                     f.use("k", kType) + ") k_len(" + f.use("k_len", perBatch) +
                     ") outs(" + f.use("pyramid", pyramidType) + ")";
    f.result(pyramidType);
    if (s.wantOpenSums) {
      std::string type = tensor({-1, s.kvHeads, -1, s.headDim}, "f32");
      op += " open_sums(" + f.use("open_sums", type) + ")";
      f.result(type);
    }
    if (s.usesAtoms()) {
      op += " atoms(" + f.use("atoms", atomsType) + ") outlier(" +
            f.use("outlier", outlierType) + ")";
      f.result(atomsType);
      f.result(outlierType);
    }
    text += f.print("build_pyramid", op);
  }
  auto positions = [&](FunctionPrinter &f) {
    std::string op = " k_len(" + f.use("k_len", perBatch) + ")";
    if (s.hasQStart)
      op += " q_start(" + f.use("q_start", perBatch) + ")";
    f.declare("scale", "f32");
    return op + " scale(%scale)";
  };
  if (s.functions & RouteFunction) {
    FunctionPrinter f;
    f.declare("q", qType);
    f.declare("k", kType);
    f.declare("pyramid", pyramidType);
    std::string op = "pisa.route " + params +
                     " ins(%q, %k, %pyramid : " + qType + ", " + kType + ", " +
                     pyramidType + ")";
    if (s.usesAtoms()) {
      f.declare("atoms", atomsType);
      f.declare("outlier", outlierType);
      op += " atoms(%atoms, %outlier : " + atomsType + ", " + outlierType + ")";
    }
    op += positions(f);
    std::string list = tensor({-1, s.kvHeads, -1, p.topk}, "i32");
    op += " outs(" + f.use("indices", list) + ")";
    f.result(list);
    if (s.wantCount) {
      std::string type = tensor({-1, s.kvHeads, -1}, "i32");
      op += " count(" + f.use("count", type) + ")";
      f.result(type);
    }
    if (s.wantScores) {
      std::string scores = tensor({-1, s.kvHeads, -1, p.topk}, "f32");
      op += " scores(" + f.use("scores", scores) + ")";
      f.result(scores);
    }
    text += f.print("route", op);
  }
  if (s.functions & AttentionFunction) {
    FunctionPrinter f;
    std::string list = tensor({-1, s.kvHeads, -1, s.listWidth}, "i32");
    f.declare("q", qType);
    f.declare("k", kType);
    f.declare("v", vType);
    f.declare("indices", list);
    std::string op = "pisa.attention " + params +
                     " ins(%q, %k, %v, %indices : " + qType + ", " + kType +
                     ", " + vType + ", " + list + ")" + positions(f);
    op += " outs(" + f.use("out", oType) + ")";
    f.result(oType);
    if (s.wantLse) {
      std::string type = tensor({-1, s.heads, -1}, "f32");
      op += " lse(" + f.use("lse", type) + ")";
      f.result(type);
    }
    text += f.print("attention", op);
  }
  return text;
}
