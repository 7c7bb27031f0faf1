//===- TaskMemory.h - Workgroup memory of a GPU task ------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_DIALECT_PISA_TRANSFORMS_TASKMEMORY_H
#define PISA_DIALECT_PISA_TRANSFORMS_TASKMEMORY_H

#include "pisa/Dialect/Pisa/IR/Pisa.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::pisa {

/// Byte offset in the task's workgroup memory of an op's own scratch.
inline constexpr StringLiteral kScratchAttr = "pisa.scratch";
/// Warps of a task, on its `scf.forall`.
inline constexpr StringLiteral kNumWarpsAttr = "pisa.num_warps";
/// Tasks that shall share a multiprocessor, which bounds their registers.
inline constexpr StringLiteral kMinBlocksAttr = "pisa.min_blocks";
/// Bytes of workgroup memory, on the `scf.forall` of a task.
inline constexpr StringLiteral kSharedBytesAttr = "pisa.shared_bytes";

/// Words of the bitmap of `union_nodes`: nodes that it unites in one pass.
inline constexpr int64_t kUnionWords = 512, kWordBits = 32;

/// Bytes of workgroup memory that a tile op needs for itself.
int64_t getScratchBytes(Operation *op, int64_t numWarps);

/// A range of workgroup memory.
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool overlaps(const ByteRange &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// A barrier of all warps. bar.sync counts a warp when its first lanes arrive,
/// so lanes that left a loop at different times meet first.
void createTaskBarrier(OpBuilder &b, Location loc);

/// What an operand of a tile op was cut from: the static storage.
Value getStorage(Value buffer);

/// The bytes behind a buffer in workgroup memory; nothing for other buffers.
std::optional<ByteRange> getWorkgroupRange(Value buffer);
/// The range of `kScratchAttr`.
std::optional<ByteRange> getScratchRange(Operation *op);

} // namespace mlir::pisa

#endif // PISA_DIALECT_PISA_TRANSFORMS_TASKMEMORY_H
