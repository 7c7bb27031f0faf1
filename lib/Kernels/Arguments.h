//===- Arguments.h - Checked tensors of a call ------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_LIB_KERNELS_ARGUMENTS_H
#define PISA_LIB_KERNELS_ARGUMENTS_H

#include "pisa/Kernels/Kernel.h"

#include <array>

namespace pisa {

/// The axes of all tensors. A size is bound by the first tensor that has the
/// axis, or beforehand; every other tensor must agree.
enum class Axis { B, Hq, Hkv, Tq, Tk, D, Dv, NQ, K, Rows, Levels, Leaves, A };
constexpr size_t kNumAxes = static_cast<size_t>(Axis::A) + 1;

/// Checks the tensors of one call against each other and makes arguments of
/// compiled code from them. The first error sticks: what is made afterwards is
/// not to be used.
class ArgumentChecker {
public:
  /// Where tensors must be.
  enum class Memory { Cpu, Cuda };

  ArgumentChecker(Memory memory, bool headsInside)
      : memory(memory), headsInside(headsInside) {
    sizes.fill(-1);
  }

  enum class Use { Input, Output };
  enum class Layout { Plain, Heads }; ///< Heads: as the call's q, k, v, out

  /// Says what a size must be, and why: "as in 'q'".
  void bind(Axis axis, int64_t size, llvm::StringRef why);
  int64_t getSize(Axis axis) const { return sizes[static_cast<size_t>(axis)]; }

  CpuArgument tensor(llvm::StringRef name, const DLTensor *tensor,
                     DLDataType type, llvm::ArrayRef<Axis> axes, Use use,
                     Layout layout = Layout::Plain);
  /// An i32 per sequence: checked against [least, most] and copied.
  void perSequence(llvm::StringRef name, const DLTensor *tensor, int64_t least,
                   int64_t most, llvm::SmallVectorImpl<int32_t> &values);
  /// A tensor that the kernel does not take.
  void refuse(llvm::StringRef name, const DLTensor *tensor,
              llvm::StringRef why);
  void fail(ErrorKind kind, const llvm::Twine &message);

  bool failed() const { return kind.has_value(); }
  llvm::Error takeError();

private:
  void checkDevice(llvm::StringRef name, const DLTensor &tensor);

  Memory memory;
  bool headsInside;
  std::array<int64_t, kNumAxes> sizes;
  std::array<std::string, kNumAxes> reasons;
  std::optional<ErrorKind> kind;
  std::string message;
};

/// The tensors of a call, checked against what the kernel was made for and
/// against each other. What is absent, and what is only between the functions
/// of a whole forward pass, has no data.
class CheckedCall {
public:
  using Memory = ArgumentChecker::Memory;
  CheckedCall(const KernelSpec &spec, const KernelArguments &given,
              Memory memory);

  // In this order. Each fails for the first thing that is wrong.
  /// q, k and v, whose sizes give those of all others.
  llvm::Error checkInputs();
  /// Lengths and positions, copied: from the tensors, or what stands for them.
  llvm::Error readPositions(llvm::SmallVectorImpl<int32_t> &kLen,
                            llvm::SmallVectorImpl<int32_t> &qStart);
  /// Lengths and positions that stay where they are, unread: `kLen` and
  /// `qStart` if they are given.
  llvm::Error keepPositions();
  llvm::Error checkOthers();

  CpuArgument q, k, v, kLen, qStart, pyramid, openSums, atoms, outlier, indices,
      count, scores, out, lse;
  int64_t batch = 0, keys = 0;
  // Sizes of what is in between.
  int64_t rows = 0, leaves = 0, queryBlocks = 0;

  bool builds() const { return spec.functions & BuildPyramidFunction; }
  bool routes() const { return spec.functions & RouteFunction; }
  bool attends() const { return spec.functions & AttentionFunction; }
  bool isWhole() const { return spec.functions == AllFunctions; }

private:
  /// Fails if the last query cannot stand at the last key of whole tensors.
  llvm::Error checkDefaultStart();
  llvm::Error checkStart(size_t sequence, int64_t start);

  const KernelSpec &spec;
  const KernelArguments &given;
  ArgumentChecker check;
};

DLDataType getDLType(ElementType type);
inline constexpr DLDataType kInt32 = {kDLInt, 32, 1};
inline constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};
std::string printDLType(DLDataType type);

} // namespace pisa

#endif // PISA_LIB_KERNELS_ARGUMENTS_H
