//===- pisa-translate.cpp - Lowered modules into other formats --*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Pipelines/Dialects.h"
#include "pisa/Target/NvptxTarget.h"

#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

static llvm::cl::opt<std::string>
    chip("chip", llvm::cl::desc("The GPU to write PTX for (default sm_80)"),
         llvm::cl::init("sm_80"));

static mlir::LogicalResult emitPtx(mlir::ModuleOp module,
                                   llvm::raw_ostream &os) {
  auto target = pisa::NvptxTarget::get(chip);
  if (!target)
    return module.emitError(llvm::toString(target.takeError()));
  auto ptx = pisa::compileToPtx(module, *target);
  if (!ptx)
    return module.emitError(llvm::toString(ptx.takeError()));
  os << *ptx;
  return mlir::success();
}

/// A bundle is one JSON object that holds all that a machine without LLVM
/// needs: the kernels as PTX, and for each function what to launch.
static mlir::LogicalResult emitBundle(mlir::ModuleOp module,
                                      llvm::raw_ostream &os) {
  std::string ptx;
  llvm::raw_string_ostream text(ptx);
  if (mlir::failed(emitPtx(module, text)))
    return mlir::failure();
  llvm::json::Array functions;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (func.isPrivate())
      continue;
    mlir::FailureOr<pisa::Plan> plan = pisa::buildPlan(func);
    if (mlir::failed(plan))
      return mlir::failure();
    auto json = llvm::json::parse(plan->toJson());
    if (!json)
      return module.emitError(llvm::toString(json.takeError()));
    functions.push_back(std::move(*json));
  }
  llvm::json::Object bundle{{"format", "pisa-bundle"},
                            {"version", 1},
                            {"chip", chip.getValue()},
                            {"functions", std::move(functions)},
                            {"ptx", ptx}};
  os << llvm::formatv("{0:2}", llvm::json::Value(std::move(bundle))) << "\n";
  return mlir::success();
}

/// A translation of modules that pisa-nvptx-pipeline lowered.
static mlir::TranslateFromMLIRRegistration makeTranslation(
    llvm::StringRef name, llvm::StringRef description,
    mlir::LogicalResult (*emit)(mlir::ModuleOp, llvm::raw_ostream &)) {
  return mlir::TranslateFromMLIRRegistration(
      name, description,
      [emit](mlir::Operation *op,
             llvm::raw_ostream &os) -> mlir::LogicalResult {
        auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
        return module ? emit(module, os) : op->emitError("expected a module");
      },
      [](mlir::DialectRegistry &registry) {
        mlir::pisa::registerDialects(registry);
        pisa::registerNvptxTranslations(registry);
      });
}

int main(int argc, char **argv) {
  auto ptx = makeTranslation(
      "emit-ptx", "the kernels of a module that pisa-nvptx-pipeline lowered",
      emitPtx);
  auto bundle = makeTranslation("emit-bundle",
                                "kernels and launches, to be run without LLVM",
                                emitBundle);
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "pisa translation tool"));
}
