//===- Module.cpp - MLIR modules from C -------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa-c/Module.h"

#include "Support.h"

#include "pisa/Compiler/Compile.h"
#include "pisa/Compiler/Cuda.h"
#include "pisa/Compiler/Function.h"
#include "pisa/Pipelines/Dialects.h"
#include "pisa/Pipelines/Pipelines.h"
#include "pisa/Runtime/CudaRuntime.h"
#include "pisa/Target/NvptxTarget.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <mutex>
#include <set>

using namespace pisa;
using llvm::StringRef;
using llvm::Twine;

/// A context is for one thread at a time: `mutex` guards all that uses it.
struct PisaModule {
  PisaModule()
      : context(createContext()),
        handler(context.get(), [this](mlir::Diagnostic &diagnostic) {
          if (!said.empty())
            said += "\n";
          said += diagnostic.str();
          for (mlir::Diagnostic &note : diagnostic.getNotes())
            said += "\nnote: " + note.str();
          return mlir::success();
        }) {}

  llvm::Error lower(const char *pipeline);
  llvm::Error compile();
  /// Fills in `cudaCode`.
  llvm::Error compileForGpu();
  llvm::Error call(StringRef function, llvm::ArrayRef<PisaValue> arguments,
                   void *stream, PisaRunInfo *info);

  std::mutex mutex;
  std::unique_ptr<mlir::MLIRContext> context;
  std::string said; // diagnostics since it was cleared
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> original, lowered;
  std::string cpu, description;
  std::string chip;                          // "" for the CPU
  std::map<std::string, std::string> levels; // "" is the last one
  std::unique_ptr<llvm::MemoryBuffer> object;
  std::unique_ptr<CpuModule> code;
  std::optional<CudaCode> cudaCode;
  std::map<std::string, std::unique_ptr<CudaExecutable>> executables;
  /// Functions and sizes that `checkShapes` has found good.
  std::set<std::vector<int64_t>> goodShapes;

private:
  /// An error with what the compiler said about it.
  llvm::Error makeSaid(ErrorKind kind, const Twine &message) {
    return makeError(kind, said.empty() ? message : message + ":\n" + said);
  }
  llvm::Error check(mlir::func::FuncOp func,
                    llvm::ArrayRef<CpuArgument> arguments);
  llvm::Error lowerByLevels();
  llvm::Expected<CudaExecutable *> getExecutable(StringRef function);
};

template <typename Op> static std::string print(Op op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op.print(os);
  return text;
}

llvm::Error PisaModule::lowerByLevels() {
  auto afterLevel = [&](StringRef level, mlir::ModuleOp module) {
    levels[level.str()] = print(module);
  };
  if (!chip.empty()) {
    CudaCompileOptions options;
    options.chip = chip;
    options.afterLevel = afterLevel;
    auto compiled = compileForCuda(*lowered, options);
    if (!compiled)
      return makeSaid(saysNotImplemented(said) ? ErrorKind::Unsupported
                                               : ErrorKind::InvalidValue,
                      llvm::toString(compiled.takeError()));
    cudaCode = std::move(*compiled);
    levels[""] = levels["plan"];
    return llvm::Error::success();
  }
  CompileOptions options;
  options.cpu = cpu;
  options.afterLevel = afterLevel;
  auto compiled = compileToObjectForCpu(*lowered, options);
  if (!compiled)
    return makeSaid(ErrorKind::InvalidValue,
                    llvm::toString(compiled.takeError()));
  object = std::move(*compiled);
  levels[""] = levels["llvm"];
  return llvm::Error::success();
}

llvm::Error PisaModule::lower(const char *pipeline) {
  lowered = original->clone();
  if (!pipeline)
    return lowerByLevels();
  static std::once_flag once;
  std::call_once(once, mlir::pisa::registerPasses);
  mlir::PassManager pm(context.get(), mlir::PassManager::getAnyOpAnchorName());
  std::string why;
  llvm::raw_string_ostream os(why);
  if (failed(mlir::parsePassPipeline(pipeline, pm, os)))
    return makeError(ErrorKind::InvalidValue,
                     "expected a pass pipeline, but got '" + Twine(pipeline) +
                         "': " + StringRef(why).rtrim());
  if (failed(pm.run(*lowered)))
    return makeSaid(ErrorKind::InvalidValue,
                    "pipeline '" + Twine(pipeline) + "' failed");
  levels[""] = print(*lowered);
  return llvm::Error::success();
}

llvm::Error PisaModule::compileForGpu() {
  if (cudaCode)
    return llvm::Error::success();
  if (chip.empty())
    return makeError(ErrorKind::InvalidValue,
                     "expected a module for GPUs, but it is for the CPU");
  said.clear();
  auto compiled = makeCudaCode(*lowered, chip);
  if (!compiled)
    return makeSaid(ErrorKind::InvalidValue,
                    "expected the pipeline to end as pisa-nvptx-pipeline does, "
                    "but " +
                        llvm::toString(compiled.takeError()));
  cudaCode = std::move(*compiled);
  return llvm::Error::success();
}

/// The driver compiles the PTX on the first call.
llvm::Expected<CudaExecutable *> PisaModule::getExecutable(StringRef function) {
  if (auto error = compileForGpu())
    return error;
  std::unique_ptr<CudaExecutable> &place = executables[function.str()];
  if (place)
    return place.get();
  const Plan *plan = cudaCode->find(function);
  if (!plan)
    return makeError(ErrorKind::InvalidValue,
                     "expected @" + function + " to be a public function");
  RuntimeOr<std::unique_ptr<CudaExecutable>> made =
      CudaExecutable::create(*plan, cudaCode->ptx);
  if (!made)
    return toError(made.getStatus());
  place = std::move(*made);
  return place.get();
}

llvm::Error PisaModule::compile() {
  if (code)
    return llvm::Error::success();
  if (!chip.empty())
    return makeError(ErrorKind::InvalidValue,
                     "expected a module for the CPU, but it is for " + chip);
  if (!object) {
    auto target = CpuTarget::get(cpu);
    if (!target)
      return makeError(ErrorKind::InvalidValue,
                       llvm::toString(target.takeError()));
    for (mlir::Operation &op : lowered->getBody()->getOperations())
      if (op.getName().getDialectNamespace() != "llvm")
        return makeError(ErrorKind::InvalidValue,
                         "expected the pipeline to end in the LLVM dialect, "
                         "but it left '" +
                             op.getName().getStringRef() + "'");
    said.clear();
    auto compiled = compileToObject(*lowered, *target);
    if (!compiled)
      return makeSaid(ErrorKind::Failed, llvm::toString(compiled.takeError()));
    object = std::move(*compiled);
  }
  auto loaded = CpuModule::load(
      llvm::MemoryBuffer::getMemBufferCopy(object->getBuffer()));
  if (!loaded)
    return loaded.takeError();
  code = std::move(*loaded);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static bool hasType(const DLTensor &tensor, mlir::Type type) {
  auto is = [&](uint8_t code, unsigned bits) {
    return tensor.dtype.code == code && tensor.dtype.bits == bits &&
           tensor.dtype.lanes == 1;
  };
  if (type.isF16() || type.isF32() || type.isF64())
    return is(kDLFloat, type.getIntOrFloatBitWidth());
  if (type.isBF16())
    return is(kDLBfloat, 16);
  if (type.isInteger(32) || type.isInteger(64))
    return is(kDLInt, type.getIntOrFloatBitWidth());
  return false;
}

/// The argument of compiled code for a value, if that has the type.
static llvm::Expected<CpuArgument> getArgument(StringRef name, mlir::Type type,
                                               const PisaValue &value,
                                               bool onCuda) {
  auto wrong = [&](const Twine &got, ErrorKind kind = ErrorKind::InvalidType) {
    return makeError(kind, "expected " + name + " to be " + print(type) +
                               ", but got " + got);
  };
  CpuArgument result;
  auto tensorType = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensorType) {
    if (type.isF32() && value.kind == PISA_VALUE_F32)
      return CpuArgument::scalar(value.as.f32);
    if (type.isInteger(32) && value.kind == PISA_VALUE_I32) {
      result.kind = CpuArgument::Kind::I32;
      result.i32 = value.as.i32;
      return result;
    }
    if (type.isIndex() && value.kind == PISA_VALUE_INDEX) {
      result.kind = CpuArgument::Kind::Index;
      result.index = value.as.index;
      return result;
    }
    return wrong("a value of another kind");
  }
  const DLTensor *tensor =
      value.kind == PISA_VALUE_TENSOR ? value.as.tensor : nullptr;
  if (!tensor)
    return wrong("no tensor");
  DLDeviceType device = tensor->device.device_type;
  if (onCuda && device != kDLCUDA && device != kDLCUDAManaged)
    return wrong("a tensor that is not on a CUDA device");
  if (!onCuda && device != kDLCPU)
    return wrong("a tensor outside the CPU's memory");
  if (!hasType(*tensor, tensorType.getElementType()))
    return wrong("other elements (DLPack type " + Twine(tensor->dtype.code) +
                 " of " + Twine(tensor->dtype.bits) + " bits)");
  if (tensor->ndim != tensorType.getRank())
    return wrong(Twine(tensor->ndim) + " dimensions", ErrorKind::InvalidValue);
  result.sizes.assign(tensor->shape, tensor->shape + tensor->ndim);
  if (tensor->strides)
    result.strides.assign(tensor->strides, tensor->strides + tensor->ndim);
  else
    result.strides = CpuArgument::array(nullptr, result.sizes).strides;
  for (int64_t i = 0; i < tensor->ndim; ++i)
    if (!tensorType.isDynamicDim(i) &&
        tensorType.getDimSize(i) != result.sizes[i])
      return wrong("size " + Twine(result.sizes[i]) + " in dimension " +
                       Twine(i),
                   ErrorKind::InvalidValue);
  if (tensor->ndim > 0) {
    if (!llvm::is_contained(result.sizes, 0) && result.sizes.back() > 1 &&
        result.strides.back() != 1)
      return wrong("stride " + Twine(result.strides.back()) +
                       " in its last dimension, which must be 1",
                   ErrorKind::InvalidValue);
    result.strides.back() = 1;
  }
  result.data = static_cast<char *>(tensor->data) + tensor->byte_offset;
  return result;
}

llvm::Error PisaModule::check(mlir::func::FuncOp func,
                              llvm::ArrayRef<CpuArgument> arguments) {
  std::vector<int64_t> key = {
      static_cast<int64_t>(llvm::hash_value(func.getName()))};
  llvm::SmallVector<llvm::ArrayRef<int64_t>> sizes;
  for (const CpuArgument &argument : arguments) {
    sizes.push_back(argument.sizes);
    key.insert(key.end(), argument.sizes.begin(), argument.sizes.end());
  }
  if (goodShapes.count(key))
    return llvm::Error::success();
  said.clear();
  if (auto error = checkShapes(func, sizes))
    return makeSaid(ErrorKind::InvalidValue, llvm::toString(std::move(error)));
  goodShapes.insert(std::move(key));
  return llvm::Error::success();
}

static llvm::Error callOnCuda(CudaExecutable &executable,
                              llvm::ArrayRef<CpuArgument> arguments,
                              void *stream, PisaRunInfo *info) {
  auto values = llvm::to_vector(llvm::map_range(arguments, toArgumentValue));
  int64_t scratchBytes = 0;
  if (auto error = toError(
          executable.run(values.data(), values.size(), stream, &scratchBytes)))
    return error;
  if (info)
    info->scratch_bytes = scratchBytes;
  return llvm::Error::success();
}

llvm::Error PisaModule::call(StringRef name, llvm::ArrayRef<PisaValue> values,
                             void *stream, PisaRunInfo *info) {
  if (stream && chip.empty())
    return makeError(ErrorKind::InvalidValue,
                     "expected no stream for a module for the CPU");
  CpuModule::Entry entry = nullptr;
  CudaExecutable *executable = nullptr;
  llvm::SmallVector<CpuArgument> arguments;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto func = original->lookupSymbol<mlir::func::FuncOp>(name);
    if (!func || func.isExternal())
      return makeError(ErrorKind::InvalidValue,
                       "expected a function of the module, but got '" + name +
                           "'");
    if (func.getNumArguments() != values.size())
      return makeError(ErrorKind::InvalidType,
                       "expected " + Twine(func.getNumArguments()) +
                           " arguments of @" + name + ", but got " +
                           Twine(values.size()));
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto argument = getArgument(
          ("argument " + Twine(i) + " of @" + name).str(), type, values[i],
          /*onCuda=*/!chip.empty());
      if (!argument)
        return argument.takeError();
      arguments.push_back(*argument);
    }
    if (auto error = check(func, arguments))
      return error;
    if (!chip.empty()) {
      auto found = getExecutable(name);
      if (!found)
        return found.takeError();
      executable = *found;
    } else {
      if (auto error = compile())
        return error;
      auto found = code->lookup(name);
      if (!found)
        return found.takeError();
      entry = *found;
    }
  }
  if (executable)
    return callOnCuda(*executable, arguments, stream, info);
  std::shared_ptr<ThreadPool> pool = capi::getPool();
  Invocation invocation(*pool);
  if (auto error = CpuModule::call(entry, arguments, invocation))
    return error;
  if (info)
    info->scratch_bytes = invocation.getPeakScratch();
  return llvm::Error::success();
}

static std::string describe(mlir::ModuleOp module) {
  llvm::json::Array functions;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (func.isExternal())
      continue;
    llvm::json::Array arguments, results;
    for (mlir::Type type : func.getArgumentTypes())
      arguments.push_back(print(type));
    for (mlir::Value value :
         func.getBody().back().getTerminator()->getOperands()) {
      std::optional<unsigned> argument;
      if (llvm::isa<mlir::RankedTensorType>(value.getType()))
        argument = getOutputArgument(value);
      results.push_back(argument ? int64_t(*argument) : -1);
    }
    functions.push_back(llvm::json::Object{{"name", func.getName()},
                                           {"arguments", std::move(arguments)},
                                           {"results", std::move(results)}});
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(functions));
  return text;
}

//===----------------------------------------------------------------------===//
// C
//===----------------------------------------------------------------------===//

static PisaStatus create(std::unique_ptr<PisaModule> module, const char *text,
                         size_t length, const char *pipeline,
                         PisaModule **result) {
  *result = nullptr;
  module->original = mlir::parseSourceString<mlir::ModuleOp>(
      StringRef(text, length), module->context.get());
  if (!module->original)
    return capi::finish(
        makeError(ErrorKind::InvalidValue,
                  "expected MLIR, but it cannot be parsed:\n" + module->said));
  module->said.clear();
  module->description = describe(*module->original);
  if (auto error = module->lower(pipeline))
    return capi::finish(std::move(error));
  *result = module.release();
  return PISA_SUCCESS;
}

PisaStatus pisaModuleCreate(const char *text, size_t length,
                            const char *pipeline, const char *cpu,
                            PisaModule **result) {
  auto module = std::make_unique<PisaModule>();
  module->cpu = cpu ? cpu : "";
  return create(std::move(module), text, length, pipeline, result);
}

PisaStatus pisaModuleCreateForCuda(const char *text, size_t length,
                                   const char *pipeline, const char *chip,
                                   PisaModule **result) {
  *result = nullptr;
  auto module = std::make_unique<PisaModule>();
  if (chip) {
    auto target = NvptxTarget::get(chip);
    if (!target)
      return capi::finish(makeError(ErrorKind::InvalidValue,
                                    llvm::toString(target.takeError())));
    module->chip = chip;
  } else if (auto found = getChipOfDevice(0)) {
    module->chip = *found;
  } else {
    llvm::consumeError(found.takeError());
    module->chip = NvptxTarget().chip;
  }
  return create(std::move(module), text, length, pipeline, result);
}

void pisaModuleDestroy(PisaModule *module) { delete module; }

PisaStatus pisaModuleGetIr(PisaModule *module, const char *level,
                           const char **text, size_t *length) {
  auto found = module->levels.find(level);
  if (found == module->levels.end()) {
    std::vector<std::string> names;
    for (const auto &[name, ir] : module->levels)
      names.push_back("'" + name + "'");
    return capi::finish(makeError(ErrorKind::InvalidValue,
                                  "expected a level to be one of " +
                                      llvm::join(names, ", ") + ", but got '" +
                                      Twine(level) + "'"));
  }
  *text = found->second.c_str();
  *length = found->second.size();
  return PISA_SUCCESS;
}

PisaStatus pisaModuleGetObject(PisaModule *module, const char **bytes,
                               size_t *length) {
  std::lock_guard<std::mutex> lock(module->mutex);
  if (auto error = module->compile())
    return capi::finish(std::move(error));
  *bytes = module->object->getBufferStart();
  *length = module->object->getBufferSize();
  return PISA_SUCCESS;
}

PisaStatus pisaModuleGetPtx(PisaModule *module, const char **text,
                            size_t *length) {
  std::lock_guard<std::mutex> lock(module->mutex);
  if (auto error = module->compileForGpu())
    return capi::finish(std::move(error));
  *text = module->cudaCode->ptx.c_str();
  *length = module->cudaCode->ptx.size();
  return PISA_SUCCESS;
}

const char *pisaModuleGetChip(PisaModule *module) {
  return module->chip.c_str();
}

const char *pisaModuleDescribe(PisaModule *module) {
  return module->description.c_str();
}

PisaStatus pisaModuleCall(PisaModule *module, const char *function,
                          const PisaValue *arguments, size_t count,
                          PisaRunInfo *info) {
  return pisaModuleCallOnStream(module, function, arguments, count,
                                /*stream=*/nullptr, info);
}

PisaStatus pisaModuleCallOnStream(PisaModule *module, const char *function,
                                  const PisaValue *arguments, size_t count,
                                  void *stream, PisaRunInfo *info) {
  if (info)
    if (auto error = capi::checkStruct("PisaRunInfo", info, info->struct_size,
                                       sizeof(PisaRunInfo)))
      return capi::finish(std::move(error));
  return capi::finish(
      module->call(function, llvm::ArrayRef(arguments, count), stream, info));
}
