//===- Status.h - Errors with a kind ----------------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_COMPILER_STATUS_H
#define PISA_COMPILER_STATUS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace pisa {

/// What the caller can do about an error. Errors of any other class count as
/// `Failed`.
enum class ErrorKind {
  InvalidValue, ///< a size, an option or IR that the rules forbid
  InvalidType,  ///< a dtype, a device or an object of the wrong kind
  Unsupported,  ///< within the method, but not built
  OutOfMemory,
  Failed, ///< the rest: the system, the compiler, checks at run time
};

class StatusError : public llvm::ErrorInfo<StatusError> {
public:
  static char ID;
  StatusError(ErrorKind kind, std::string message)
      : kind(kind), text(std::move(message)) {}

  ErrorKind getKind() const { return kind; }
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  ErrorKind kind;
  std::string text;
};

inline llvm::Error makeError(ErrorKind kind, const llvm::Twine &message) {
  return llvm::make_error<StatusError>(kind, message.str());
}

} // namespace pisa

#endif // PISA_COMPILER_STATUS_H
