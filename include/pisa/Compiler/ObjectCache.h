//===- ObjectCache.h - Compiled objects on disk -----------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_COMPILER_OBJECTCACHE_H
#define PISA_COMPILER_OBJECTCACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace pisa {

/// A folder of objects, one file a key. Safe under concurrent processes: files
/// are written beside their name and renamed. A file is used only if it is
/// whole (a SHA-256 over all of it), holds the very key, belongs to this user
/// and cannot be written by others: it is code that we are about to run.
/// Nothing here fails a compilation; what went wrong is a warning.
class ObjectCache {
public:
  /// The folder is made when something is stored.
  explicit ObjectCache(std::string directory)
      : directory(std::move(directory)) {}

  struct Lookup {
    std::unique_ptr<llvm::MemoryBuffer> object; ///< null: not there
    std::string warning;                        ///< "" if all is well
  };
  Lookup load(llvm::StringRef key) const;

  /// Returns a warning, "" if the object was stored.
  std::string store(llvm::StringRef key, llvm::StringRef object) const;

  /// $PISA_CACHE_DIR, or pisa/objects in $XDG_CACHE_HOME or ~/.cache. "" means
  /// none: that variable is set but empty, or there is no home.
  static std::string getDefaultDirectory();

private:
  std::string getPath(llvm::StringRef key) const;
  std::string directory;
};

/// What compiled this: the version, and the linker's id of the very binary that
/// this code is in, so that no other build's objects are taken. "" if the
/// binary has none.
std::string getBuildId();

} // namespace pisa

#endif // PISA_COMPILER_OBJECTCACHE_H
