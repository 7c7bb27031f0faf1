//===- RuntimeStatus.h - Errors without LLVM --------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_RUNTIME_RUNTIMESTATUS_H
#define PISA_RUNTIME_RUNTIMESTATUS_H

#include <optional>
#include <string>
#include <utility>

namespace pisa {

/// Success, or an error with a kind: what runs compiled code also runs where
/// there is no LLVM.
class [[nodiscard]] RuntimeStatus {
public:
  /// The errors are those of `ErrorKind`.
  enum Kind {
    Success,
    InvalidValue,
    InvalidType,
    Unsupported,
    OutOfMemory,
    Failed
  };

  RuntimeStatus() = default;
  RuntimeStatus(Kind kind, std::string message)
      : kind(kind), message(std::move(message)) {}

  bool failed() const { return kind != Success; }
  Kind getKind() const { return kind; }
  const std::string &getMessage() const { return message; }

private:
  Kind kind = Success;
  std::string message;
};

/// A value or the error that kept us from having it.
template <typename T> class [[nodiscard]] RuntimeOr {
public:
  RuntimeOr(T value) : value(std::move(value)) {}
  RuntimeOr(RuntimeStatus error) : error(std::move(error)) {}

  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }
  /// Success if there is a value.
  const RuntimeStatus &getStatus() const { return error; }

private:
  std::optional<T> value;
  RuntimeStatus error;
};

} // namespace pisa

#endif // PISA_RUNTIME_RUNTIMESTATUS_H
