//===- NpyDetail.h - What the .npy and .npz readers share -----------------===//

#ifndef PISA_LIB_SUPPORT_NPYDETAIL_H
#define PISA_LIB_SUPPORT_NPYDETAIL_H

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace pisa::npy::detail {

/// A regular file open for reading, with its size.
class File {
public:
  /// Returns false, with a message, unless `path` is a regular file.
  bool open(const std::string &path, std::string &error);
  uint64_t size() const { return fileSize; }
  /// Reads `count` bytes at `offset`, all of them or fails.
  bool read(uint64_t offset, void *buffer, size_t count, std::string &error);

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file;
  std::string path;
  uint64_t fileSize = 0;
};

} // namespace pisa::npy::detail

#endif // PISA_LIB_SUPPORT_NPYDETAIL_H
