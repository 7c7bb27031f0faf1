//===- CpuJit.cpp - LLVM dialect to machine code in this process -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Target/CpuJit.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace pisa;

static void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef cpu, llvm::StringRef features) {
  initializeTarget();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("no code generator for this machine: " +
                                   error);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive, /*JIT=*/true));
  if (!machine)
    return llvm::createStringError("no code generator for CPU '" + cpu + "'");
  return machine;
}

llvm::Expected<CpuTarget> CpuTarget::get(llvm::StringRef cpu) {
  CpuTarget result;
  bool host = cpu.empty();
  result.cpu = host ? llvm::sys::getHostCPUName().str() : cpu.str();
  if (host) {
    // The host may lack features of its model (hypervisors hide some).
    llvm::SubtargetFeatures features;
    for (const auto &[name, enabled] : llvm::sys::getHostCPUFeatures())
      features.AddFeature(name, enabled);
    result.features = features.getString();
  }
  auto machine = createTargetMachine(result.cpu, result.features);
  if (!machine)
    return machine.takeError();
  const llvm::MCSubtargetInfo *info = (*machine)->getMCSubtargetInfo();
  if (!info->isCPUStringValid(result.cpu))
    return llvm::createStringError(
        "expected the name of a CPU that LLVM knows, "
        "but got '" +
        result.cpu + "'");
  result.vectorBits = info->checkFeatures("+avx512f") ? 512
                      : info->checkFeatures("+avx2")  ? 256
                                                      : 128;
  return result;
}

CpuArgument CpuArgument::scalar(float value) {
  CpuArgument argument;
  argument.kind = Kind::F32;
  argument.f32 = value;
  return argument;
}

CpuArgument CpuArgument::array(void *data, llvm::ArrayRef<int64_t> sizes) {
  CpuArgument argument;
  argument.data = data;
  argument.sizes.assign(sizes.begin(), sizes.end());
  argument.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    argument.strides[i] = stride;
    stride *= sizes[i];
  }
  return argument;
}

CpuModule::CpuModule() = default;
CpuModule::~CpuModule() = default;

llvm::Expected<std::unique_ptr<CpuModule>>
CpuModule::compile(mlir::ModuleOp module, const CpuTarget &target) {
  auto machine = createTargetMachine(target.cpu, target.features);
  if (!machine)
    return machine.takeError();

  auto optimize = mlir::makeOptimizingTransformer(
      /*optLevel=*/3, /*sizeLevel=*/0, machine->get());
  // ExecutionEngineOptions keeps a reference: the callable must outlive
  // `create`.
  auto transform = [&](llvm::Module *llvmModule) -> llvm::Error {
    // Some CPUs with 512-bit registers ask for 256-bit code, against the
    // down-clocking of old ones; our loops are dense enough to gain anyway.
    std::string width = std::to_string(target.vectorBits);
    for (llvm::Function &function : *llvmModule)
      function.addFnAttr("prefer-vector-width", width);
    return optimize(llvmModule);
  };
  mlir::ExecutionEngineOptions options;
  options.transformer = transform;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Aggressive;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine =
      mlir::ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap symbols;
    for (const RuntimeSymbol &symbol : getCpuRuntimeSymbols())
      symbols[interner(symbol.name)] = {
          llvm::orc::ExecutorAddr::fromPtr(symbol.address),
          llvm::JITSymbolFlags::Exported};
    return symbols;
  });
  std::unique_ptr<CpuModule> result(new CpuModule());
  result->engine = std::move(*engine);
  return result;
}

PISA_CALLS_COMPILED_CODE static void runEntry(void (*entry)(void **),
                                              void **arguments) {
  entry(arguments);
}

llvm::Error CpuModule::call(llvm::StringRef function,
                            llvm::ArrayRef<CpuArgument> arguments,
                            Invocation &invocation) {
  auto entry = engine->lookupPacked(function);
  if (!entry)
    return entry.takeError();
  // The packed form takes a pointer to each scalar; a memref is its
  // descriptor's fields: two pointers, an offset, sizes, strides.
  static int64_t zero = 0;
  llvm::SmallVector<void *> packed;
  for (const CpuArgument &argument : arguments) {
    auto address = [](auto &value) {
      return const_cast<void *>(static_cast<const void *>(&value));
    };
    switch (argument.kind) {
    case CpuArgument::Kind::F32:
      packed.push_back(address(argument.f32));
      break;
    case CpuArgument::Kind::I32:
      packed.push_back(address(argument.i32));
      break;
    case CpuArgument::Kind::Index:
      packed.push_back(address(argument.index));
      break;
    case CpuArgument::Kind::Array:
      packed.push_back(address(argument.data));
      packed.push_back(address(argument.data));
      packed.push_back(&zero);
      for (const int64_t &size : argument.sizes)
        packed.push_back(address(size));
      for (const int64_t &stride : argument.strides)
        packed.push_back(address(stride));
      break;
    }
  }
  std::optional<std::string> error =
      invocation.run([&] { runEntry(*entry, packed.data()); });
  return error ? llvm::createStringError(*error) : llvm::Error::success();
}

void pisa::registerCpuTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
