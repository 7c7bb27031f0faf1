//===- CpuJit.cpp - LLVM dialect to machine code in this process -*- C++
//-*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Target/CpuJit.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
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

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// Entries are called with an array of pointers to their arguments, so that a
/// caller needs no C type for each signature.
static std::string getEntryName(llvm::StringRef function) {
  return ("pisa_entry_" + function).str();
}

static llvm::Error addEntries(llvm::Module &module) {
  llvm::SmallVector<llvm::Function *> functions;
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && function.hasExternalLinkage())
      functions.push_back(&function);
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer}, /*isVarArg=*/false);
  for (llvm::Function *function : functions) {
    if (!function->getReturnType()->isVoidTy())
      return llvm::createStringError("expected function '" +
                                     function->getName() +
                                     "' to return nothing once it is lowered");
    auto *entry =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                               getEntryName(function->getName()), module);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", entry));
    llvm::SmallVector<llvm::Value *> arguments;
    for (llvm::Argument &argument : function->args()) {
      llvm::Value *slot =
          b.CreateConstGEP1_64(pointer, entry->getArg(0), argument.getArgNo());
      arguments.push_back(
          b.CreateLoad(argument.getType(), b.CreateLoad(pointer, slot)));
    }
    b.CreateCall(function, arguments);
    b.CreateRetVoid();
    // What the entry calls may be inlined into it and then dropped.
    function->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
pisa::compileToObject(mlir::ModuleOp module, const CpuTarget &target) {
  auto machine = createTargetMachine(target.cpu, target.features);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      mlir::translateModuleToLLVMIR(module, context);
  if (!code)
    return llvm::createStringError("translation to LLVM IR failed");
  code->setDataLayout((*machine)->createDataLayout());
  code->setTargetTriple((*machine)->getTargetTriple());
  if (auto error = addEntries(*code))
    return error;
  // Some CPUs with 512-bit registers ask for 256-bit code, against the
  // down-clocking of old ones; our loops are dense enough to gain anyway.
  std::string width = std::to_string(target.vectorBits);
  for (llvm::Function &function : *code)
    function.addFnAttr("prefer-vector-width", width);
  auto optimize = mlir::makeOptimizingTransformer(
      /*optLevel=*/3, /*sizeLevel=*/0, machine->get());
  if (auto error = optimize(code.get()))
    return error;
  return llvm::orc::SimpleCompiler(**machine)(*code);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

CpuModule::CpuModule() = default;
CpuModule::~CpuModule() = default;

llvm::Expected<std::unique_ptr<CpuModule>>
CpuModule::load(std::unique_ptr<llvm::MemoryBuffer> object) {
  initializeTarget();
  // The code has no initialisers to run, which is what a platform is for.
  auto jit = llvm::orc::LLJITBuilder()
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  llvm::orc::SymbolMap symbols;
  for (const RuntimeSymbol &symbol : getCpuRuntimeSymbols())
    symbols[(*jit)->mangleAndIntern(symbol.name)] = {
        llvm::orc::ExecutorAddr::fromPtr(symbol.address),
        llvm::JITSymbolFlags::Exported};
  llvm::orc::JITDylib &dylib = (*jit)->getMainJITDylib();
  if (auto error = dylib.define(llvm::orc::absoluteSymbols(symbols)))
    return error;
  if (auto error = (*jit)->addObjectFile(std::move(object)))
    return error;
  std::unique_ptr<CpuModule> result(new CpuModule());
  result->jit = std::move(*jit);
  return result;
}

llvm::Expected<CpuModule::Entry> CpuModule::lookup(llvm::StringRef function) {
  auto address = jit->lookup(getEntryName(function));
  if (!address)
    return address.takeError();
  return address->toPtr<Entry>();
}

PISA_CALLS_COMPILED_CODE static void runEntry(void (*entry)(void **),
                                              void **arguments) {
  entry(arguments);
}

llvm::Error CpuModule::call(llvm::StringRef function,
                            llvm::ArrayRef<CpuArgument> arguments,
                            Invocation &invocation) {
  auto entry = lookup(function);
  if (!entry)
    return entry.takeError();
  return call(*entry, arguments, invocation);
}

llvm::Error CpuModule::call(Entry entry, llvm::ArrayRef<CpuArgument> arguments,
                            Invocation &invocation) {
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
      invocation.run([&] { runEntry(entry, packed.data()); });
  return error ? llvm::createStringError(*error) : llvm::Error::success();
}

void pisa::registerCpuTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
