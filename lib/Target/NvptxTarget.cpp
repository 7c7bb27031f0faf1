//===- NvptxTarget.cpp - Kernels as PTX -------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Target/NvptxTarget.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace pisa;

static void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Addresses of workgroup memory in 32 bits; LLVM has no other switch.
    auto &options = llvm::cl::getRegisteredOptions();
    if (llvm::cl::Option *option = options.lookup("nvptx-short-ptr"))
      option->addOccurrence(1, "nvptx-short-ptr", "true");
  });
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef chip) {
  initializeTarget();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("no code generator for NVPTX: " + error);
  llvm::TargetOptions options;
  // Products and sums may round once: selections are compared within a
  // tolerance, and sums of the pyramid have no products.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, chip, /*Features=*/"", options, std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("no code generator for '" + chip + "'");
  return machine;
}

llvm::Expected<NvptxTarget> NvptxTarget::get(llvm::StringRef chip) {
  auto refuse = [&] {
    return llvm::createStringError(
        "expected a chip of NVIDIA from sm_80 on that LLVM knows, but got '" +
        chip + "'");
  };
  unsigned number = 0;
  llvm::StringRef digits = chip;
  if (!digits.consume_front("sm_") || digits.consumeInteger(10, number) ||
      number < 80)
    return refuse();
  auto machine = createTargetMachine("sm_80");
  if (!machine)
    return machine.takeError();
  if (!(*machine)->getMCSubtargetInfo()->isCPUStringValid(chip))
    return refuse();
  NvptxTarget target;
  target.chip = chip.str();
  return target;
}

int64_t NvptxTarget::getMaxSharedBytes() const {
  // CUDA C++ Programming Guide, technical specifications per compute
  // capability: maximum shared memory per thread block, in KiB.
  int64_t kib = 99;
  llvm::StringRef name = chip;
  if (name.starts_with("sm_80") || name.starts_with("sm_87"))
    kib = 163;
  else if (name.starts_with("sm_90") || name.starts_with("sm_10"))
    kib = 227;
  return kib * 1024;
}

/// Names of functions that are called and not defined.
static std::string getUndefined(const llvm::Module &module) {
  std::string names;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      names += (names.empty() ? "" : ", ") + function.getName().str();
  return names;
}

llvm::Expected<std::string> pisa::compileToPtx(mlir::ModuleOp module,
                                               const NvptxTarget &target) {
  auto machine = createTargetMachine(target.chip);
  if (!machine)
    return machine.takeError();
  auto kernels = module.getOps<mlir::gpu::GPUModuleOp>();
  if (std::distance(kernels.begin(), kernels.end()) != 1)
    return llvm::createStringError(
        "expected one gpu.module; run pisa-nvptx-pipeline");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      mlir::translateModuleToLLVMIR(*kernels.begin(), context);
  if (!code)
    return llvm::createStringError("translation to LLVM IR failed");
  code->setDataLayout((*machine)->createDataLayout());
  code->setTargetTriple((*machine)->getTargetTriple());
  auto optimize = mlir::makeOptimizingTransformer(
      /*optLevel=*/3, /*sizeLevel=*/0, machine->get());
  if (auto error = optimize(code.get()))
    return error;
  if (std::string names = getUndefined(*code); !names.empty())
    return llvm::createStringError("the kernels call what nothing defines: " +
                                   names);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("LLVM cannot write PTX");
  passes.run(*code);
  return std::string(text);
}

void pisa::registerNvptxTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}
