//===- Npy.cpp - .npy files -----------------------------------------------===//

#include "pisa/Support/Npy.h"

#include "NpyDetail.h"

#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace pisa::npy {

using detail::File;

static constexpr size_t magicSize = 6;
static constexpr uint8_t magic[magicSize] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
/// Magic, version, and the longer form of the header's length.
static constexpr size_t maxPreambleSize = magicSize + 2 + 4;
/// NumPy's own limits.
static constexpr size_t maxRank = 64;
static constexpr uint64_t maxHeaderSize = 1 << 20;

int64_t Array::numElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t elementSize(Array::Type type) {
  switch (type) {
  case Array::Type::F16:
  case Array::Type::BF16:
    return 2;
  case Array::Type::F32:
  case Array::Type::I32:
    return 4;
  case Array::Type::F64:
  case Array::Type::I64:
    return 8;
  }
  assert(false && "unknown type");
  return 0;
}

const char *typeName(Array::Type type) {
  switch (type) {
  case Array::Type::F32:
    return "f32";
  case Array::Type::F16:
    return "f16";
  case Array::Type::BF16:
    return "bf16";
  case Array::Type::F64:
    return "f64";
  case Array::Type::I32:
    return "i32";
  case Array::Type::I64:
    return "i64";
  }
  assert(false && "unknown type");
  return "";
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

bool File::open(const std::string &path, std::string &error) {
  // Directories and devices open well enough, but have no size to trust.
  std::error_code code;
  bool regular = std::filesystem::is_regular_file(path, code);
  if (code || !regular) {
    error = "cannot read '" + path +
            "': " + (code ? code.message() : "not a regular file");
    return false;
  }
  fileSize = std::filesystem::file_size(path, code);
  if (!code)
    file.reset(std::fopen(path.c_str(), "rb"));
  if (code || !file) {
    error = "cannot read '" + path +
            "': " + (code ? code.message() : std::strerror(errno));
    return false;
  }
  this->path = path;
  return true;
}

bool File::read(uint64_t offset, void *buffer, size_t count,
                std::string &error) {
  if (count == 0)
    return true;
  if (fseeko(file.get(), off_t(offset), SEEK_SET) == 0 &&
      std::fread(buffer, 1, count, file.get()) == count)
    return true;
  error = "cannot read '" + path + "': the file ends early";
  return false;
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

namespace {

struct Header {
  Array::Type type = Array::Type::F32;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
  uint64_t dataSize = 0; ///< Of the elements, in bytes; fits an int64_t.
};

/// Parses the dictionary of a header, the subset of Python that NumPy writes:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
public:
  explicit HeaderParser(const std::string &text) : text(text) {}

  /// On failure, `problem` says why.
  bool parse(Header &header);
  std::string problem;

private:
  bool fail(const std::string &message) {
    if (problem.empty())
      problem = message;
    return false;
  }
  char peek() const { return next < text.size() ? text[next] : '\0'; }
  void skipSpace() {
    while (next < text.size() && std::strchr(" \t\r\n", text[next]) &&
           text[next] != '\0')
      ++next;
  }
  /// Consumes `c`, after white space, if it is next.
  bool take(char c) {
    skipSpace();
    if (peek() != c)
      return false;
    ++next;
    return true;
  }
  bool parseString(std::string &value);
  bool parseBool(bool &value);
  bool parseShape(std::vector<int64_t> &shape);
  bool parseType(Array::Type &type);

  const std::string &text;
  size_t next = 0;
};

} // namespace

/// NumPy writes no escapes, so the next quote ends the string.
bool HeaderParser::parseString(std::string &value) {
  skipSpace();
  char quote = peek();
  if (quote != '\'' && quote != '"')
    return fail("expected a string at offset " + std::to_string(next));
  size_t end = text.find(quote, ++next);
  if (end == std::string::npos)
    return fail("a string does not end");
  value = text.substr(next, end - next);
  next = end + 1;
  return true;
}

bool HeaderParser::parseBool(bool &value) {
  skipSpace();
  for (bool candidate : {false, true}) {
    const char *word = candidate ? "True" : "False";
    if (text.compare(next, std::strlen(word), word) != 0)
      continue;
    next += std::strlen(word);
    value = candidate;
    return true;
  }
  return fail("expected 'fortran_order' to be True or False");
}

/// (), (3,), (3, 4) or (3, 4,).
bool HeaderParser::parseShape(std::vector<int64_t> &shape) {
  if (!take('('))
    return fail("expected 'shape' to be a tuple");
  while (!take(')')) {
    skipSpace();
    if (peek() < '0' || peek() > '9')
      return fail("expected the sizes in 'shape' to be natural numbers");
    int64_t size = 0;
    for (; peek() >= '0' && peek() <= '9'; ++next)
      if (__builtin_mul_overflow(size, 10, &size) ||
          __builtin_add_overflow(size, peek() - '0', &size))
        return fail("a size in 'shape' does not fit 64 bits");
    if (peek() == 'L') // Python 2 wrote its long integers so.
      ++next;
    if (shape.size() == maxRank)
      return fail("expected at most " + std::to_string(maxRank) +
                  " dimensions");
    shape.push_back(size);
    if (!take(',')) {
      if (!take(')'))
        return fail("expected 'shape' to be a tuple of numbers");
      break;
    }
  }
  return true;
}

/// 'descr', a type string; a list would be a structured type.
bool HeaderParser::parseType(Array::Type &type) {
  skipSpace();
  if (peek() == '[')
    return fail("structured types are not supported");
  std::string descr;
  if (!parseString(descr))
    return false;
  static const struct {
    const char *descr;
    Array::Type type;
  } known[] = {{"<f4", Array::Type::F32}, {"<f2", Array::Type::F16},
               {"<f8", Array::Type::F64}, {"<i4", Array::Type::I32},
               {"<i8", Array::Type::I64}, {"<V2", Array::Type::BF16},
               {"|V2", Array::Type::BF16}};
  for (const auto &entry : known) {
    if (descr == entry.descr) {
      type = entry.type;
      return true;
    }
  }
  if (!descr.empty() && descr[0] == '>')
    return fail("big endian data ('" + descr + "') is not supported");
  return fail("element type '" + descr +
              "' is not supported; expected <f4, <f2, <f8, <i4, <i8, or <V2 "
              "(bfloat16)");
}

bool HeaderParser::parse(Header &header) {
  // The keys come in any order, each exactly once, and no others.
  bool hasDescr = false, hasOrder = false, hasShape = false;
  auto once = [&](bool &seen, const std::string &key) {
    if (seen)
      return fail("key '" + key + "' appears twice");
    return seen = true;
  };
  if (!take('{'))
    return fail("expected a dictionary");
  while (!take('}')) {
    std::string key;
    if (!parseString(key))
      return false;
    if (!take(':'))
      return fail("expected ':' after '" + key + "'");
    bool ok = key == "descr" ? once(hasDescr, key) && parseType(header.type)
              : key == "fortran_order"
                  ? once(hasOrder, key) && parseBool(header.fortranOrder)
              : key == "shape" ? once(hasShape, key) && parseShape(header.shape)
                               : fail("unexpected key '" + key + "'");
    if (!ok)
      return false;
    if (!take(',')) {
      if (!take('}'))
        return fail("expected ',' or '}' after the value of '" + key + "'");
      break;
    }
  }
  skipSpace();
  if (next != text.size())
    return fail("unexpected text after the dictionary");
  if (!hasDescr || !hasOrder || !hasShape)
    return fail(std::string("key '") +
                (!hasDescr   ? "descr"
                 : !hasOrder ? "fortran_order"
                             : "shape") +
                "' is missing");

  // The product of the non-zero sizes has to fit, so that no partial product
  // that somebody computes later can overflow.
  int64_t bytes = elementSize(header.type);
  bool empty = false;
  for (int64_t size : header.shape) {
    empty |= size == 0;
    if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes))
      return fail("the shape holds more bytes than 64 bits can count");
  }
  header.dataSize = empty ? 0 : uint64_t(bytes);
  return true;
}

/// The offset of the header's text and its length, from the start of a file.
static bool parsePreamble(const uint8_t *bytes, size_t size, uint64_t &offset,
                          uint64_t &length, std::string &problem) {
  if (size < magicSize + 2 || std::memcmp(bytes, magic, magicSize) != 0) {
    problem = "not a .npy file";
    return false;
  }
  int major = bytes[magicSize];
  if (major < 1 || major > 3) {
    problem = "version " + std::to_string(major) +
              " of the format is not supported; expected 1, 2 or 3";
    return false;
  }
  // Version 1 has two bytes of length, the later ones four.
  size_t lengthSize = major == 1 ? 2 : 4;
  offset = magicSize + 2 + lengthSize;
  if (size < offset) {
    problem = "the header is cut short";
    return false;
  }
  length = 0;
  for (size_t i = 0; i < lengthSize; ++i)
    length |= uint64_t(bytes[magicSize + 2 + i]) << (8 * i);
  if (length > maxHeaderSize) {
    problem = "the header is " + std::to_string(length) +
              " bytes long; expected at most " + std::to_string(maxHeaderSize);
    return false;
  }
  return true;
}

/// Before anything is allocated: the file must hold the data, and nothing else.
static bool checkDataSize(const Header &header, uint64_t available,
                          std::string &problem) {
  if (header.dataSize == available)
    return true;
  problem = "the shape calls for " + std::to_string(header.dataSize) +
            " bytes of data, but there are " + std::to_string(available);
  return false;
}

/// Turns column major elements into row major ones.
static std::vector<uint8_t> transpose(const std::vector<uint8_t> &data,
                                      const std::vector<int64_t> &shape,
                                      int64_t elementBytes) {
  std::vector<uint8_t> result(data.size());
  std::vector<int64_t> strides(shape.size()), index(shape.size(), 0);
  int64_t stride = elementBytes;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  // Walks the result in order; `from` follows the index as an odometer does.
  int64_t from = 0;
  for (size_t to = 0; to < result.size(); to += elementBytes) {
    std::memcpy(&result[to], &data[from], elementBytes);
    for (size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d])
        break;
      from -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

/// `data` must be as large as the header says.
static Array makeArray(Header header, std::vector<uint8_t> data) {
  Array array;
  array.type = header.type;
  array.data = header.fortranOrder && header.shape.size() > 1
                   ? transpose(data, header.shape, elementSize(header.type))
                   : std::move(data);
  array.shape = std::move(header.shape);
  return array;
}

std::optional<Array> parseNpy(const uint8_t *bytes, size_t size,
                              const std::string &name, std::string &error) {
  std::string problem;
  auto fail = [&] {
    error = "cannot read '" + name + "': " + problem;
    return std::nullopt;
  };
  uint64_t offset, length;
  if (!parsePreamble(bytes, size, offset, length, problem))
    return fail();
  if (size - offset < length) {
    problem = "the header is cut short";
    return fail();
  }
  std::string text(reinterpret_cast<const char *>(bytes) + offset, length);
  HeaderParser parser(text);
  Header header;
  if (!parser.parse(header)) {
    problem = "bad header: " + parser.problem;
    return fail();
  }
  if (!checkDataSize(header, size - offset - length, problem))
    return fail();
  const uint8_t *data = bytes + offset + length;
  return makeArray(std::move(header), {data, bytes + size});
}

std::optional<Array> readNpy(const std::string &path, std::string &error) {
  File file;
  if (!file.open(path, error))
    return std::nullopt;
  std::string problem;
  auto fail = [&] {
    error = "cannot read '" + path + "': " + problem;
    return std::nullopt;
  };
  // As parseNpy, but the data goes where it stays: arrays may be large.
  uint8_t preamble[maxPreambleSize];
  size_t preambleSize = std::min<uint64_t>(file.size(), maxPreambleSize);
  if (!file.read(0, preamble, preambleSize, error))
    return std::nullopt;
  uint64_t offset, length;
  if (!parsePreamble(preamble, preambleSize, offset, length, problem))
    return fail();
  if (file.size() - offset < length) {
    problem = "the header is cut short";
    return fail();
  }
  std::string text(length, '\0');
  if (!file.read(offset, text.data(), length, error))
    return std::nullopt;
  HeaderParser parser(text);
  Header header;
  if (!parser.parse(header)) {
    problem = "bad header: " + parser.problem;
    return fail();
  }
  if (!checkDataSize(header, file.size() - offset - length, problem))
    return fail();
  std::vector<uint8_t> data(header.dataSize);
  if (!file.read(offset + length, data.data(), data.size(), error))
    return std::nullopt;
  return makeArray(std::move(header), std::move(data));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static const char *descrOf(Array::Type type) {
  switch (type) {
  case Array::Type::F32:
    return "<f4";
  case Array::Type::F16:
    return "<f2";
  case Array::Type::BF16:
    return "<V2";
  case Array::Type::F64:
    return "<f8";
  case Array::Type::I32:
    return "<i4";
  case Array::Type::I64:
    return "<i8";
  }
  assert(false && "unknown type");
  return "";
}

bool writeNpy(const std::string &path, const Array &array, std::string &error) {
  assert(int64_t(array.data.size()) ==
             array.numElements() * elementSize(array.type) &&
         "the data does not fill the shape");
  std::string text = std::string("{'descr': '") + descrOf(array.type) +
                     "', 'fortran_order': False, 'shape': (";
  for (size_t d = 0; d < array.shape.size(); ++d)
    text += (d == 0 ? "" : " ") + std::to_string(array.shape[d]) + ",";
  // (3, 4) as NumPy writes it; a single size keeps its comma.
  if (array.shape.size() > 1)
    text.pop_back();
  text += "), }";
  // NumPy aligns the data to 64 bytes, for those who map the file.
  size_t prefix = magicSize + 4;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';

  std::string start(reinterpret_cast<const char *>(magic), magicSize);
  start += {'\1', '\0', char(text.size() & 0xff), char(text.size() >> 8)};
  start += text;
  std::FILE *file = std::fopen(path.c_str(), "wb");
  bool ok = file != nullptr;
  if (ok) {
    ok = std::fwrite(start.data(), 1, start.size(), file) == start.size() &&
         std::fwrite(array.data.data(), 1, array.data.size(), file) ==
             array.data.size();
    ok &= std::fclose(file) == 0; // A full disk may show only here.
  }
  if (!ok)
    error = "cannot write '" + path + "': " + std::strerror(errno);
  return ok;
}

} // namespace pisa::npy
