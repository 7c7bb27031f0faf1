//===- Npz.cpp - .npz files: zip archives of .npy files -------------------===//

#include "pisa/Support/Npy.h"

#include "NpyDetail.h"

#include <algorithm>
#include <zlib.h>

namespace pisa::npy {

using detail::File;

// Record sizes and signatures of the zip format (APPNOTE.TXT).
static constexpr uint64_t endSize = 22, entrySize = 46, localSize = 30;
static constexpr uint32_t endSignature = 0x06054b50;
static constexpr uint32_t entrySignature = 0x02014b50;
static constexpr uint32_t localSignature = 0x04034b50;
/// Deflate cannot expand further, so a larger claim is a lie.
static constexpr uint64_t maxDeflateRatio = 1032;

static uint32_t get16(const uint8_t *p) { return p[0] | uint32_t(p[1]) << 8; }
static uint32_t get32(const uint8_t *p) {
  return get16(p) | get16(p + 2) << 16;
}

namespace {

struct Member {
  std::string name;
  uint32_t flags, method, crc;
  uint64_t packedSize, size, offset;
};

class Archive {
public:
  Archive(const std::string &path, std::string &error)
      : path(path), error(error) {}

  /// Reads the directory of the archive.
  bool open();
  std::optional<Array> extract(const Member &member);

  /// The .npy members; names without the suffix.
  std::map<std::string, Member> members;

private:
  bool fail(const std::string &problem) {
    error = "cannot read '" + path + "': " + problem;
    return false;
  }
  bool readDirectory(uint64_t offset, uint64_t size, uint32_t count);
  bool inflateMember(const Member &member, const std::vector<uint8_t> &packed,
                     std::vector<uint8_t> &data);

  const std::string &path;
  std::string &error;
  File file;
};

} // namespace

bool Archive::open() {
  if (!file.open(path, error))
    return false;
  if (file.size() < endSize)
    return fail("not a .npz file");
  // The end record is last, but for a comment of up to 65535 bytes.
  std::vector<uint8_t> tail(std::min<uint64_t>(file.size(), endSize + 0xffff));
  if (!file.read(file.size() - tail.size(), tail.data(), tail.size(), error))
    return false;
  for (uint64_t at = tail.size() - endSize + 1; at-- > 0;) {
    const uint8_t *end = &tail[at];
    if (get32(end) != endSignature)
      continue;
    uint32_t count = get16(end + 10);
    uint64_t size = get32(end + 12), offset = get32(end + 16);
    if (count == 0xffff || size == 0xffffffff || offset == 0xffffffff)
      return fail("zip64 archives are not supported");
    if (get16(end + 4) != 0 || get16(end + 8) != count)
      return fail("archives of several volumes are not supported");
    if (offset > file.size() || size > file.size() - offset)
      return fail("the directory of the archive is out of bounds");
    return readDirectory(offset, size, count);
  }
  return fail("not a .npz file, or cut short");
}

bool Archive::readDirectory(uint64_t offset, uint64_t size, uint32_t count) {
  std::vector<uint8_t> directory(size);
  if (!file.read(offset, directory.data(), size, error))
    return false;
  uint64_t at = 0, packedTotal = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (size - at < entrySize || get32(&directory[at]) != entrySignature)
      return fail("the directory of the archive is broken");
    const uint8_t *entry = &directory[at];
    uint64_t nameSize = get16(entry + 28);
    uint64_t entryTotal =
        entrySize + nameSize + get16(entry + 30) + get16(entry + 32);
    if (size - at < entryTotal)
      return fail("the directory of the archive is broken");
    Member member;
    member.name.assign(reinterpret_cast<const char *>(entry) + entrySize,
                       nameSize);
    member.flags = get16(entry + 8);
    member.method = get16(entry + 10);
    member.crc = get32(entry + 16);
    member.packedSize = get32(entry + 20);
    member.size = get32(entry + 24);
    member.offset = get32(entry + 42);
    at += entryTotal;

    // Members that share their bytes would make a small file a large set of
    // arrays.
    packedTotal += member.packedSize;
    if (packedTotal > file.size())
      return fail("the members of the archive overlap");
    // NumPy may store pickles and other files beside the arrays.
    const std::string suffix = ".npy";
    if (nameSize < suffix.size() ||
        member.name.compare(nameSize - suffix.size(), suffix.size(), suffix))
      continue;
    std::string name = member.name.substr(0, nameSize - suffix.size());
    if (!members.emplace(name, member).second)
      return fail("array '" + name + "' appears twice");
  }
  return true;
}

bool Archive::inflateMember(const Member &member,
                            const std::vector<uint8_t> &packed,
                            std::vector<uint8_t> &data) {
  if (member.size / maxDeflateRatio > member.packedSize)
    return fail("member '" + member.name + "' cannot unpack to " +
                std::to_string(member.size) + " bytes");
  data.resize(member.size);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) // Negative: no zlib header.
    return fail("zlib cannot start");
  // Sizes fit zlib's 32 bits, because zip64 is refused. zlib wants room, and a
  // pointer, even for no bytes.
  uint8_t none = 0;
  stream.next_in = const_cast<uint8_t *>(packed.data());
  stream.avail_in = uInt(packed.size());
  stream.next_out = data.empty() ? &none : data.data();
  stream.avail_out = uInt(data.size());
  int status = inflate(&stream, Z_FINISH);
  bool whole = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole || fail("member '" + member.name + "' is damaged");
}

std::optional<Array> Archive::extract(const Member &member) {
  auto refuse = [&](const std::string &problem) {
    fail("member '" + member.name + "' " + problem);
    return std::nullopt;
  };
  // Refused here and not in the directory: other members may be fine.
  if (member.flags & 1)
    return refuse("is encrypted");
  if (member.size == 0xffffffff || member.packedSize == 0xffffffff ||
      member.offset == 0xffffffff)
    return refuse("has 4 GiB or more: zip64 is not supported");
  if (member.method != 0 && member.method != Z_DEFLATED)
    return refuse("is packed by method " + std::to_string(member.method) +
                  "; expected 0 (stored) or 8 (deflated)");
  if (member.method == 0 && member.size != member.packedSize)
    return refuse("is damaged");

  // The local header counts for its length alone: NumPy writes zip64 sizes
  // there that the directory does not need.
  uint8_t local[localSize];
  if (member.offset > file.size() || file.size() - member.offset < localSize)
    return refuse("is out of bounds");
  if (!file.read(member.offset, local, localSize, error))
    return std::nullopt;
  uint64_t start =
      member.offset + localSize + get16(local + 26) + get16(local + 28);
  if (get32(local) != localSignature || start > file.size() ||
      file.size() - start < member.packedSize)
    return refuse("is out of bounds");

  std::vector<uint8_t> data(member.packedSize);
  if (!file.read(start, data.data(), data.size(), error))
    return std::nullopt;
  if (member.method == Z_DEFLATED) {
    std::vector<uint8_t> packed = std::move(data);
    data.clear();
    if (!inflateMember(member, packed, data))
      return std::nullopt;
  }
  if (crc32_z(0, data.data(), data.size()) != member.crc)
    return refuse("is damaged: its checksum is wrong");
  return parseNpy(data.data(), data.size(), path + ":" + member.name, error);
}

std::optional<std::map<std::string, Array>> readNpz(const std::string &path,
                                                    std::string &error) {
  Archive archive(path, error);
  if (!archive.open())
    return std::nullopt;
  std::map<std::string, Array> arrays;
  for (const auto &[name, member] : archive.members) {
    std::optional<Array> array = archive.extract(member);
    if (!array)
      return std::nullopt;
    arrays.emplace(name, std::move(*array));
  }
  return arrays;
}

std::optional<Array> readNpz(const std::string &path, const std::string &name,
                             std::string &error) {
  Archive archive(path, error);
  if (!archive.open())
    return std::nullopt;
  auto found = archive.members.find(name);
  if (found != archive.members.end())
    return archive.extract(found->second);
  error =
      "cannot read '" + path + "': there is no array '" + name + "'; it has";
  for (const auto &entry : archive.members)
    error += " '" + entry.first + "'";
  if (archive.members.empty())
    error += " none";
  return std::nullopt;
}

} // namespace pisa::npy
