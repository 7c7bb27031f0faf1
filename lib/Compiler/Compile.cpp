//===- Compile.cpp - From a module to code, level by level ------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Compiler/Compile.h"

#include "pisa/Pipelines/Dialects.h"
#include "pisa/Pipelines/Pipelines.h"
#include "pisa/Target/NvptxTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

using mlir::OpPassManager;
using mlir::PassManager;

std::function<void(llvm::StringRef, mlir::ModuleOp)>
pisa::printAfterLevels(llvm::StringSet<> levels, llvm::raw_ostream &os) {
  return [levels, &os](llvm::StringRef level, mlir::ModuleOp module) {
    if (!levels.contains(level))
      return;
    os << "// -----// level " << level << " //----- //\n";
    module.print(os);
    os << "\n";
  };
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
pisa::compileToObjectForCpu(mlir::ModuleOp module,
                            const CompileOptions &options) {
  auto target = CpuTarget::get(options.cpu);
  if (!target)
    return target.takeError();
  mlir::pisa::CpuPipelineOptions pipeline;
  pipeline.vectorBits = target->vectorBits;
  pipeline.checkInputs = options.checkInputs;

  auto reach = [&](llvm::StringRef level) {
    if (options.afterLevel)
      options.afterLevel(level, module);
  };
  auto run =
      [&](llvm::StringRef level,
          llvm::function_ref<void(OpPassManager &)> build) -> llvm::Error {
    PassManager pm(module.getContext());
    build(pm);
    if (failed(pm.run(module)))
      return llvm::createStringError("lowering to level '" + level +
                                     "' failed");
    reach(level);
    return llvm::Error::success();
  };

  reach("problem");
  if (auto error = run("phase", [&](OpPassManager &pm) {
        mlir::pisa::buildPhases(pm, pipeline);
      }))
    return error;
  if (auto error = run("tile", mlir::pisa::buildTiles))
    return error;
  if (auto error = run("kernel", mlir::pisa::buildKernels))
    return error;
  // The caller would not know how to free a new buffer, or that there is one.
  for (auto func : module.getOps<mlir::func::FuncOp>())
    if (!func.isExternal() && func.getNumResults() > 0)
      return llvm::createStringError(
          "expected results of @" + func.getName() +
          " to be buffers of its own arguments, but it returns new ones");
  if (auto error = run("llvm", mlir::pisa::buildCpuCode))
    return error;
  return compileToObject(module, *target);
}

llvm::Expected<std::unique_ptr<pisa::CpuModule>>
pisa::compileForCpu(mlir::ModuleOp module, const CompileOptions &options) {
  auto object = compileToObjectForCpu(module, options);
  if (!object)
    return object.takeError();
  return CpuModule::load(std::move(*object));
}

void pisa::registerCompiler(mlir::DialectRegistry &registry) {
  mlir::pisa::registerDialects(registry);
  registerCpuTranslations(registry);
  registerNvptxTranslations(registry);
}

std::unique_ptr<mlir::MLIRContext> pisa::createContext() {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  return std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
}
