//===- Cuda.cpp - From a module to code for NVIDIA GPUs ---------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Compiler/Cuda.h"

#include "pisa/Pipelines/Pipelines.h"
#include "pisa/Runtime/CudaRuntime.h"
#include "pisa/Target/NvptxTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Endian.h"
#include <sys/stat.h>

using namespace pisa;

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

const Plan *CudaCode::find(llvm::StringRef function) const {
  for (const Plan &plan : plans)
    if (plan.name == function)
      return &plan;
  return nullptr;
}

// Texts, each after its length in 8 bytes: the chip, the PTX, plans as JSON.

std::string CudaCode::serialize() const {
  std::string bytes;
  auto append = [&](llvm::StringRef text) {
    char size[sizeof(uint64_t)];
    llvm::support::endian::write64le(size, text.size());
    bytes.append(size, sizeof(size));
    bytes.append(text.data(), text.size());
  };
  append(chip);
  append(ptx);
  for (const Plan &plan : plans)
    append(plan.toJson());
  return bytes;
}

llvm::Expected<CudaCode> CudaCode::deserialize(llvm::StringRef bytes) {
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    if (bytes.size() < sizeof(uint64_t))
      return llvm::createStringError("the code is cut off");
    uint64_t size = llvm::support::endian::read64le(bytes.data());
    bytes = bytes.drop_front(sizeof(uint64_t));
    if (size > bytes.size())
      return llvm::createStringError("the code is cut off");
    texts.push_back(bytes.take_front(size).str());
    bytes = bytes.drop_front(size);
  }
  if (texts.size() < 2)
    return llvm::createStringError("the code is cut off");
  CudaCode code;
  code.chip = texts[0];
  code.ptx = texts[1];
  for (const std::string &text : llvm::ArrayRef(texts).drop_front(2)) {
    RuntimeOr<Plan> plan = Plan::fromJson(text);
    if (!plan)
      return toError(plan.getStatus());
    code.plans.push_back(std::move(*plan));
  }
  return code;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace {
/// Sees a module at each level that is verified.
class LevelWatcher : public mlir::PassInstrumentation {
public:
  using Callback = std::function<void(llvm::StringRef, mlir::ModuleOp)>;
  explicit LevelWatcher(Callback callback) : callback(std::move(callback)) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
    if (!module || pass->getArgument() != "pisa-verify-level")
      return;
    // pisa-verify-level{level=tile}
    std::string text;
    llvm::raw_string_ostream os(text);
    pass->printAsTextualPipeline(os);
    llvm::StringRef level = llvm::StringRef(text).split("level=").second;
    callback(level.take_until([](char c) { return c == '}' || c == ' '; }),
             module);
  }

private:
  Callback callback;
};
} // namespace

static llvm::Expected<NvptxTarget> getTarget(llvm::StringRef chip) {
  auto target = NvptxTarget::get(chip);
  if (!target)
    return makeError(ErrorKind::InvalidValue,
                     llvm::toString(target.takeError()));
  return target;
}

static llvm::Expected<CudaCode> makeCode(mlir::ModuleOp module,
                                         const NvptxTarget &target) {
  CudaCode code;
  code.chip = target.chip;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (func.isExternal() || func.isPrivate())
      continue;
    // The caller would not know how to free a new buffer, or that there is one.
    if (func.getNumResults() > 0)
      return llvm::createStringError(
          "expected results of @" + func.getName() +
          " to be buffers of its own arguments, but it returns new ones");
    mlir::FailureOr<Plan> plan = buildPlan(func);
    if (failed(plan))
      return llvm::createStringError("the host side of @" + func.getName() +
                                     " is no list of launches");
    code.plans.push_back(std::move(*plan));
  }
  auto ptx = compileToPtx(module, target);
  if (!ptx)
    return ptx.takeError();
  code.ptx = std::move(*ptx);
  return code;
}

llvm::Expected<CudaCode>
pisa::compileForCuda(mlir::ModuleOp module, const CudaCompileOptions &options) {
  auto target = getTarget(options.chip);
  if (!target)
    return target.takeError();
  mlir::pisa::NvptxPipelineOptions pipeline;
  pipeline.maxSharedBytes = target->getMaxSharedBytes();
  pipeline.checkInputs = options.checkInputs;
  pipeline.partialBytes = options.partialBytes;
  mlir::PassManager pm(module.getContext());
  mlir::pisa::buildNvptxPipeline(pm, pipeline);
  if (options.afterLevel)
    pm.addInstrumentation(std::make_unique<LevelWatcher>(options.afterLevel));
  if (failed(pm.run(module)))
    return llvm::createStringError("lowering for " + target->chip + " failed");
  return makeCode(module, *target);
}

llvm::Expected<CudaCode> pisa::makeCudaCode(mlir::ModuleOp module,
                                            llvm::StringRef chip) {
  auto target = getTarget(chip);
  if (!target)
    return target.takeError();
  return makeCode(module, *target);
}

bool pisa::saysNotImplemented(llvm::StringRef diagnostic) {
  return diagnostic.contains("not implemented for NVPTX");
}

//===----------------------------------------------------------------------===//
// Images and devices
//===----------------------------------------------------------------------===//

std::string pisa::describePtxas() {
  std::optional<std::string> ptxas = findPtxas();
  struct stat file;
  if (!ptxas || ::stat(ptxas->c_str(), &file) != 0)
    return "";
  // Asking it for its version takes longer than all the rest of a call.
  return *ptxas + " " + std::to_string(file.st_size) + " " +
         std::to_string(file.st_mtim.tv_sec) + "." +
         std::to_string(file.st_mtim.tv_nsec);
}

std::string pisa::makeCudaImage(const CudaCode &code, std::string &warning) {
  warning.clear();
  if (!findPtxas())
    return code.ptx;
  RuntimeOr<AssembledPtx> assembled = assemblePtx(code.ptx, code.chip);
  if (assembled)
    return std::move(assembled->cubin);
  warning = "the CUDA driver compiles the kernels: " +
            assembled.getStatus().getMessage();
  return code.ptx;
}

llvm::Expected<std::string> pisa::getChip(int capability) {
  constexpr int oldest = 80;
  for (int number = capability; number >= oldest; --number) {
    auto target = NvptxTarget::get("sm_" + std::to_string(number));
    if (target)
      return target->chip;
    llvm::consumeError(target.takeError());
  }
  return makeError(ErrorKind::Unsupported,
                   "expected a GPU of compute capability 8.0 or later, but got " +
                       llvm::Twine(capability / 10) + "." +
                       llvm::Twine(capability % 10));
}

llvm::Expected<std::string> pisa::getChipOfDevice(int ordinal) {
  RuntimeOr<std::shared_ptr<CudaDevice>> device = CudaDevice::get(ordinal);
  if (!device)
    return toError(device.getStatus());
  return getChip((*device)->getComputeCapability());
}

ArgumentValue pisa::toArgumentValue(const CpuArgument &argument) {
  switch (argument.kind) {
  case CpuArgument::Kind::F32:
    return ArgumentValue::scalar(argument.f32);
  case CpuArgument::Kind::I32:
    return ArgumentValue::scalar(uint64_t(uint32_t(argument.i32)));
  case CpuArgument::Kind::Index:
    return ArgumentValue::scalar(uint64_t(argument.index));
  case CpuArgument::Kind::Array:
    return ArgumentValue::tensor(argument.data, argument.sizes.data(),
                                 argument.strides.data());
  }
  llvm_unreachable("covered switch");
}

llvm::Error pisa::toError(const RuntimeStatus &status) {
  auto make = [&](ErrorKind kind) {
    return makeError(kind, status.getMessage());
  };
  switch (status.getKind()) {
  case RuntimeStatus::Success:
    return llvm::Error::success();
  case RuntimeStatus::InvalidValue:
    return make(ErrorKind::InvalidValue);
  case RuntimeStatus::InvalidType:
    return make(ErrorKind::InvalidType);
  case RuntimeStatus::Unsupported:
    return make(ErrorKind::Unsupported);
  case RuntimeStatus::OutOfMemory:
    return make(ErrorKind::OutOfMemory);
  case RuntimeStatus::Failed:
    break;
  }
  return make(ErrorKind::Failed);
}
