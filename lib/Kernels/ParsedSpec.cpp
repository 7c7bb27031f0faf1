//===- ParsedSpec.cpp - Specs that are right, as modules -------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParsedSpec.h"

using namespace pisa;

llvm::Error pisa::checkSpec(const KernelSpec &spec) {
  bool whole = spec.functions == AllFunctions;
  if (!whole && spec.functions != BuildPyramidFunction &&
      spec.functions != RouteFunction && spec.functions != AttentionFunction)
    return makeError(ErrorKind::InvalidValue,
                     "expected one function or all three, but got the set " +
                         llvm::Twine(spec.functions));
  if (whole && spec.listWidth != spec.params.topk)
    return makeError(
        ErrorKind::InvalidValue,
        "expected lists as wide as topk = " + llvm::Twine(spec.params.topk) +
            " in a whole forward pass, but got " + llvm::Twine(spec.listWidth));
  for (auto [name, value] :
       {std::pair("D", spec.headDim), std::pair("Dv", spec.valueDim)})
    if (value < 8 || value > 256 || value % 8 != 0)
      return makeError(ErrorKind::Unsupported,
                       "expected head dimension " + llvm::Twine(name) +
                           " to be a multiple of 8 in [8, 256], but got " +
                           llvm::Twine(value));
  if (spec.kvHeads < 1 || spec.heads < 1 || spec.heads % spec.kvHeads != 0)
    return makeError(ErrorKind::InvalidValue,
                     "expected the number of query heads Hq to be a positive "
                     "multiple of the number of kv heads Hkv, but got " +
                         llvm::Twine(spec.heads) + " and " +
                         llvm::Twine(spec.kvHeads));
  if (spec.functions == AttentionFunction && spec.listWidth < 1)
    return makeError(ErrorKind::InvalidValue,
                     "expected lists of at least 1 entry, but got " +
                         llvm::Twine(spec.listWidth));
  return llvm::Error::success();
}
