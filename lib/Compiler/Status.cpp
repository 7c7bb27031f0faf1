//===- Status.cpp - Errors with a kind --------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Compiler/Status.h"

#include "llvm/Support/raw_ostream.h"

using namespace pisa;

char StatusError::ID = 0;

void StatusError::log(llvm::raw_ostream &os) const { os << text; }

std::error_code StatusError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}
