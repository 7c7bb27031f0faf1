//===- ObjectCache.cpp - Compiled objects on disk ---------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pisa/Compiler/ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace pisa;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

// A file: the magic, a SHA-256 of all that follows, the key's length in 8
// bytes, the key, the object.
static constexpr llvm::StringLiteral kMagic("PISAOBJ1");
static constexpr size_t kHashBytes = 32;
static constexpr size_t kHeaderBytes = kMagic.size() + kHashBytes;

static llvm::StringRef asText(const std::array<uint8_t, kHashBytes> &hash) {
  return {reinterpret_cast<const char *>(hash.data()), hash.size()};
}

static std::array<uint8_t, kHashBytes> hashOf(llvm::StringRef bytes) {
  return llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
}

std::string ObjectCache::getPath(llvm::StringRef key) const {
  llvm::SmallString<128> file(directory);
  path::append(file, llvm::toHex(hashOf(key), /*LowerCase=*/true) + ".o");
  return file.str().str();
}

ObjectCache::Lookup ObjectCache::load(llvm::StringRef key) const {
  std::string file = getPath(key);
  auto refuse = [&](const llvm::Twine &why) {
    return Lookup{
        nullptr,
        ("the kernel cache's file '" + file + "' is not used: " + why).str()};
  };
  struct stat status;
  if (::stat(file.c_str(), &status) != 0)
    return {};
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)))
    return refuse("it belongs to another user or can be written by others");
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return refuse(buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  llvm::StringRef body = bytes.drop_front(std::min(kHeaderBytes, bytes.size()));
  if (bytes.size() < kHeaderBytes + sizeof(uint64_t) ||
      !bytes.starts_with(kMagic) ||
      bytes.substr(kMagic.size(), kHashBytes) != asText(hashOf(body)))
    return refuse("it is damaged");
  uint64_t keySize = llvm::support::endian::read64le(body.data());
  body = body.drop_front(sizeof(uint64_t));
  if (keySize > body.size() || body.take_front(keySize) != key)
    return refuse("it holds another kernel");
  return {llvm::MemoryBuffer::getMemBufferCopy(body.drop_front(keySize), file),
          ""};
}

std::string ObjectCache::store(llvm::StringRef key,
                               llvm::StringRef object) const {
  auto warn = [&](const std::error_code &error) {
    return "the kernel cache '" + directory +
           "' cannot be written: " + error.message() +
           "; kernels are compiled anew in each process";
  };
  if (auto error = fs::create_directories(directory, /*IgnoreExisting=*/true,
                                          fs::owner_all))
    return warn(error);
  std::string size(sizeof(uint64_t), 0);
  llvm::support::endian::write64le(size.data(), key.size());
  std::string body = (llvm::Twine(size) + key + object).str();
  auto hash = hashOf(body);

  llvm::SmallString<128> temporary;
  int descriptor;
  if (auto error = fs::createUniqueFile(getPath(key) + ".%%%%%%%%", descriptor,
                                        temporary, fs::OF_None,
                                        fs::owner_read | fs::owner_write))
    return warn(error);
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << kMagic << asText(hash) << body;
  os.close();
  std::error_code error = os.error();
  os.clear_error();
  if (!error)
    error = fs::rename(temporary, getPath(key));
  if (!error)
    return "";
  fs::remove(temporary);
  return warn(error);
}

std::string ObjectCache::getDefaultDirectory() {
  if (const char *given = std::getenv("PISA_CACHE_DIR"))
    return given;
  llvm::SmallString<128> directory;
  const char *caches = std::getenv("XDG_CACHE_HOME");
  if (caches && *caches)
    directory = caches;
  else if (!path::home_directory(directory))
    return "";
  else
    path::append(directory, ".cache");
  path::append(directory, "pisa", "objects");
  return directory.str().str();
}

/// Appends the build id of the loaded object that holds this function.
static int findBuildId(dl_phdr_info *info, size_t, void *result) {
  auto here = reinterpret_cast<uintptr_t>(&findBuildId);
  bool mine = false;
  llvm::StringRef notes;
  for (const auto &header : llvm::ArrayRef(info->dlpi_phdr, info->dlpi_phnum)) {
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    mine |= header.p_type == PT_LOAD && here >= begin &&
            here - begin < header.p_memsz;
    if (header.p_type != PT_NOTE)
      continue;
    llvm::StringRef bytes(reinterpret_cast<const char *>(begin),
                          header.p_memsz);
    auto align = [&](uint64_t size) {
      return (size + header.p_align - 1) & -uint64_t(header.p_align);
    };
    while (bytes.size() >= sizeof(ElfW(Nhdr))) {
      auto *note = reinterpret_cast<const ElfW(Nhdr) *>(bytes.data());
      bytes = bytes.drop_front(sizeof(*note));
      llvm::StringRef name = bytes.take_front(note->n_namesz);
      bytes = bytes.drop_front(
          std::min<uint64_t>(align(note->n_namesz), bytes.size()));
      if (note->n_type == NT_GNU_BUILD_ID && name == llvm::StringRef("GNU", 4))
        notes = bytes.take_front(note->n_descsz);
      bytes = bytes.drop_front(
          std::min<uint64_t>(align(note->n_descsz), bytes.size()));
    }
  }
  if (!mine)
    return 0;
  *static_cast<std::string *>(result) = llvm::toHex(notes, /*LowerCase=*/true);
  return 1;
}

std::string pisa::getBuildId() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(findBuildId, &found);
    return found.empty() ? found : PISA_VERSION "-" + found;
  }();
  return id;
}
