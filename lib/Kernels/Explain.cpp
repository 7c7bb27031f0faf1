//===- Explain.cpp - What would be chosen for a kernel ----------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParsedSpec.h"

#include "pisa/Compiler/Cuda.h"
#include "pisa/Dialect/Pisa/IR/Pisa.h"
#include "pisa/Dialect/Pisa/Transforms/Passes.h"
#include "pisa/Kernels/CudaKernel.h"
#include "pisa/Kernels/Kernel.h"
#include "pisa/Target/NvptxTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"

using namespace pisa;
using mlir::pisa::PisaSetLoweringConfigPassOptions;

/// The tiles of each function of a spec.
static llvm::Expected<llvm::json::Object>
explainTiles(const KernelSpec &spec,
             const PisaSetLoweringConfigPassOptions &options) {
  auto parsed = ParsedSpec::parse(printModule(spec));
  if (!parsed)
    return parsed.takeError();
  mlir::PassManager pm((*parsed)->getModule().getContext());
  pm.addPass(mlir::pisa::createPisaSetLoweringConfigPass(options));
  if (failed(pm.run((*parsed)->getModule())))
    return makeError(saysNotImplemented((*parsed)->getSaid())
                         ? ErrorKind::Unsupported
                         : ErrorKind::Failed,
                     (*parsed)->getSaid());
  llvm::json::Object functions;
  (*parsed)->getModule().walk([&](mlir::Operation *op) {
    auto config =
        op->getAttrOfType<mlir::pisa::LoweringConfigAttr>("lowering_config");
    if (!config)
      return;
    llvm::json::Object tiles{{"query_tile", config.getQueryTile()},
                             {"leaf_tile", config.getLeafTile()},
                             {"row_tile", config.getRowTile()},
                             {"column_tile", config.getColumnTile()}};
    if (llvm::isa<mlir::pisa::RouteOp>(op) && config.getGather() > 0)
      tiles["gather"] = config.getGather();
    functions[op->getParentOfType<mlir::func::FuncOp>().getName()] =
        std::move(tiles);
  });
  return functions;
}

static std::string print(llvm::json::Object object) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(object));
  return text;
}

llvm::Expected<std::string> pisa::explain(const KernelSpec &spec,
                                          const std::string &cpu) {
  if (auto error = checkSpec(spec))
    return error;
  auto target = CpuTarget::get(cpu);
  if (!target)
    return makeError(ErrorKind::InvalidValue,
                     llvm::toString(target.takeError()));
  PisaSetLoweringConfigPassOptions options;
  options.vectorBits = target->vectorBits;
  auto tiles = explainTiles(spec, options);
  if (!tiles)
    return tiles.takeError();
  return print(llvm::json::Object{{"target", "cpu"},
                                  {"cpu", target->cpu},
                                  {"vector_bits", target->vectorBits},
                                  {"strategy", "query tiles"},
                                  {"tiles", std::move(*tiles)}});
}

llvm::Expected<std::string> pisa::explainForCuda(const KernelSpec &spec,
                                                 const std::string &chip) {
  if (auto error = checkSpec(spec))
    return error;
  auto target = NvptxTarget::get(chip);
  if (!target)
    return makeError(ErrorKind::InvalidValue,
                     llvm::toString(target.takeError()));
  PisaSetLoweringConfigPassOptions options;
  options.target = "nvptx";
  auto tiles = explainTiles(spec, options);
  if (!tiles)
    return tiles.takeError();
  const llvm::json::Object *route = tiles->getObject("route");
  bool gathers = route && route->get("gather");
  return print(llvm::json::Object{
      {"target", "cuda"},
      {"chip", target->chip},
      {"max_shared_bytes", target->getMaxSharedBytes()},
      {"strategy",
       gathers ? "query tiles, scores leaf by leaf" : "query tiles"},
      {"tiles", std::move(*tiles)}});
}
