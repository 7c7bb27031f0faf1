//===- CheckMessage.h - What a check of inputs says -------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_CHECKMESSAGE_H
#define PISA_RUNTIME_CHECKMESSAGE_H

#include <cstdint>
#include <string>

namespace pisa {

/// The same on CPUs and GPUs.
inline std::string describeDuplicateBlock(int64_t batch, int64_t kvHead,
                                          int64_t queryBlock, int64_t block) {
  return "expected the entries of a list of blocks to be distinct, but block " +
         std::to_string(block) + " stands twice in the list of batch " +
         std::to_string(batch) + ", kv head " + std::to_string(kvHead) +
         ", query block " + std::to_string(queryBlock);
}

} // namespace pisa

#endif // PISA_RUNTIME_CHECKMESSAGE_H
