//===- Arguments.cpp - Checked tensors of a call ----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "llvm/ADT/StringExtras.h"

using namespace pisa;
using llvm::StringRef;
using llvm::Twine;

static const char *const kAxisNames[kNumAxes] = {
    "B",  "Hq", "Hkv",  "Tq",     "Tk",     "D", "Dv",
    "NQ", "K",  "rows", "levels", "leaves", "A"};

static const char *axisName(Axis axis) {
  return kAxisNames[static_cast<size_t>(axis)];
}

DLDataType pisa::getDLType(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return {kDLFloat, 16, 1};
  case ElementType::BF16:
    return {kDLBfloat, 16, 1};
  case ElementType::F32:
    break;
  }
  return kFloat32;
}

std::string pisa::printDLType(DLDataType type) {
  const char *names[] = {"int", "uint", "float", "handle", "bfloat", "complex"};
  std::string text = type.code < std::size(names)
                         ? names[type.code]
                         : "type " + std::to_string(type.code) + " of ";
  text += std::to_string(type.bits);
  return type.lanes == 1 ? text : text + "x" + std::to_string(type.lanes);
}

void ArgumentChecker::fail(ErrorKind failure, const Twine &text) {
  if (kind)
    return;
  kind = failure;
  message = text.str();
}

llvm::Error ArgumentChecker::takeError() {
  return kind ? makeError(*kind, message) : llvm::Error::success();
}

void ArgumentChecker::bind(Axis axis, int64_t size, StringRef why) {
  sizes[static_cast<size_t>(axis)] = size;
  reasons[static_cast<size_t>(axis)] = why;
}

void ArgumentChecker::refuse(StringRef name, const DLTensor *tensor,
                             StringRef why) {
  if (tensor)
    fail(ErrorKind::InvalidValue, "expected no '" + name + "' " + why);
}

void ArgumentChecker::checkDevice(StringRef name, const DLTensor &tensor) {
  DLDeviceType type = tensor.device.device_type;
  if (memory == Memory::Cuda) {
    // Which device it is, the driver knows.
    if (type != kDLCUDA && type != kDLCUDAManaged)
      fail(ErrorKind::InvalidType,
           "expected '" + name +
               "' to be on a CUDA device, but it is in other memory (DLPack "
               "type " +
               Twine(type) + ")");
    return;
  }
  if (type != kDLCPU && type != kDLCUDAHost)
    fail(type == kDLCUDA ? ErrorKind::Unsupported : ErrorKind::InvalidType,
         "expected '" + name + "' to be in the CPU's memory, but it is on " +
             (type == kDLCUDA ? "a CUDA" : "another") +
             " device (DLPack type " + Twine(type) + ")");
}

CpuArgument ArgumentChecker::tensor(StringRef name, const DLTensor *tensor,
                                    DLDataType type, llvm::ArrayRef<Axis> axes,
                                    Use use, Layout layout) {
  CpuArgument result;
  if (failed())
    return result;
  if (!tensor) {
    fail(ErrorKind::InvalidType,
         "expected a tensor '" + name + "', but got none");
    return result;
  }
  checkDevice(name, *tensor);
  if (failed())
    return result;
  if (tensor->dtype.code != type.code || tensor->dtype.bits != type.bits ||
      tensor->dtype.lanes != type.lanes) {
    fail(ErrorKind::InvalidType, "expected '" + name + "' to be " +
                                     printDLType(type) + ", but got " +
                                     printDLType(tensor->dtype));
    return result;
  }

  // The order of the tensor's own dimensions.
  llvm::SmallVector<Axis, 5> order(axes);
  bool swapped = layout == Layout::Heads && headsInside;
  if (swapped)
    std::swap(order[1], order[2]);
  auto printOrder = [&] {
    return "[" +
           llvm::join(
               llvm::map_range(order, [](Axis axis) { return axisName(axis); }),
               ", ") +
           "]";
  };
  int64_t rank = axes.size();
  if (tensor->ndim != rank) {
    fail(ErrorKind::InvalidValue,
         "expected '" + name + "' to have " + Twine(rank) + " dimensions, " +
             printOrder() + ", but got " + Twine(tensor->ndim));
    return result;
  }
  result.sizes.assign(tensor->shape, tensor->shape + rank);
  if (tensor->strides)
    result.strides.assign(tensor->strides, tensor->strides + rank);
  else
    result.strides = CpuArgument::array(nullptr, result.sizes).strides;
  if (swapped) {
    std::swap(result.sizes[1], result.sizes[2]);
    std::swap(result.strides[1], result.strides[2]);
  }

  // Of an array without elements no stride is used, and libraries put any
  // there.
  bool empty = llvm::is_contained(result.sizes, 0);
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = result.sizes[i];
    if (size < 0) {
      fail(ErrorKind::InvalidValue,
           "expected " + Twine(axisName(axes[i])) + " of '" + name +
               "' to be at least 0, but got " + Twine(size));
      return result;
    }
    int64_t &bound = sizes[static_cast<size_t>(axes[i])];
    std::string &reason = reasons[static_cast<size_t>(axes[i])];
    if (bound < 0) {
      bound = size;
      reason = ("as in '" + name + "'").str();
    }
    if (size != bound) {
      fail(ErrorKind::InvalidValue, "expected " + Twine(axisName(axes[i])) +
                                        " of '" + name + "' " + printOrder() +
                                        " to be " + Twine(bound) + ", " +
                                        reason + ", but got " + Twine(size));
      return result;
    }
    // Two elements of an output in one place would be a race.
    if (!empty && use == Use::Output && size > 1 && result.strides[i] == 0) {
      fail(ErrorKind::InvalidValue,
           "expected '" + name + "' " + printOrder() +
               " to have an own place for each element, but its stride in " +
               axisName(axes[i]) + " is 0");
      return result;
    }
  }
  if (!empty && result.sizes[rank - 1] > 1 && result.strides[rank - 1] != 1) {
    fail(ErrorKind::InvalidValue,
         "expected '" + name + "' " + printOrder() +
             " to have stride 1 in its last dimension, but got " +
             Twine(result.strides[rank - 1]) + "; make it contiguous first");
    return result;
  }
  result.strides[rank - 1] = 1;
  result.data = static_cast<char *>(tensor->data) + tensor->byte_offset;
  if (empty)
    return result;
  if (!tensor->data) {
    fail(ErrorKind::InvalidValue,
         "expected '" + name + "' to have data, but got a null pointer");
    return result;
  }
  unsigned bytes = type.bits / 8;
  if (reinterpret_cast<uintptr_t>(result.data) % bytes != 0)
    fail(ErrorKind::InvalidValue, "expected the data of '" + name +
                                      "' to be aligned to its elements' " +
                                      Twine(bytes) + " bytes");
  return result;
}

void ArgumentChecker::perSequence(StringRef name, const DLTensor *tensor,
                                  int64_t least, int64_t most,
                                  llvm::SmallVectorImpl<int32_t> &values) {
  // One number a sequence: any stride, because it is copied.
  DLTensor anyStride;
  int64_t stride = 1;
  if (tensor && tensor->ndim == 1 && tensor->strides) {
    anyStride = *tensor;
    stride = tensor->strides[0];
    anyStride.strides = nullptr;
    tensor = &anyStride;
  }
  CpuArgument view = this->tensor(name, tensor, kInt32, {Axis::B}, Use::Input);
  if (failed())
    return;
  for (int64_t b = 0; b < view.sizes[0]; ++b) {
    int32_t value = static_cast<const int32_t *>(view.data)[b * stride];
    if (value < least || value > most)
      return fail(ErrorKind::InvalidValue, "expected " + name + "[" + Twine(b) +
                                               "] to be in [" + Twine(least) +
                                               ", " + Twine(most) +
                                               "], but got " + Twine(value));
    values.push_back(value);
  }
}
