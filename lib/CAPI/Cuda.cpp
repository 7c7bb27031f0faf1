//===- Cuda.cpp - NVIDIA GPUs from C ----------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa-c/Cuda.h"

#include "Support.h"

#include "pisa/Compiler/Cuda.h"
#include "pisa/Runtime/CudaRuntime.h"

#include <cstring>

using namespace pisa;

PisaStatus pisaGetCudaDeviceCount(int32_t *count) {
  *count = 0;
  RuntimeOr<int> found = getCudaDeviceCount();
  if (!found)
    return capi::finish(toError(found.getStatus()));
  *count = *found;
  return PISA_SUCCESS;
}

PisaStatus pisaGetCudaDevice(int32_t ordinal, PisaCudaDevice *result) {
  if (auto error = capi::checkStruct("PisaCudaDevice", result,
                                     result ? result->struct_size : 0,
                                     sizeof(PisaCudaDevice)))
    return capi::finish(std::move(error));
  RuntimeOr<std::shared_ptr<CudaDevice>> device = CudaDevice::get(ordinal);
  if (!device)
    return capi::finish(toError(device.getStatus()));
  *result = {};
  result->struct_size = sizeof(PisaCudaDevice);
  std::strncpy(result->name, (*device)->getName().c_str(),
               sizeof(result->name) - 1);
  result->compute_capability = (*device)->getComputeCapability();
  result->multiprocessors = (*device)->getMultiprocessorCount();
  result->max_shared_bytes = (*device)->getMaxSharedBytes();
  result->driver_version = (*device)->getDriverVersion();
  auto chip = getChip(result->compute_capability);
  if (chip)
    std::strncpy(result->chip, chip->c_str(), sizeof(result->chip) - 1);
  else
    llvm::consumeError(chip.takeError());
  return PISA_SUCCESS;
}

const char *pisaFindPtxas() {
  static thread_local std::string path;
  path = findPtxas().value_or("");
  return path.c_str();
}
