//===- NpyTest.cpp - .npy and .npz files, conversions ---------------------===//

#include "pisa/Support/Npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <zlib.h>

using namespace pisa::npy;
using Type = Array::Type;

namespace {

using Bytes = std::string;

std::string tempPath(const std::string &name) {
  const auto *test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + test->test_suite_name() + "_" + test->name() +
         "_" + name;
}

std::string writeFile(const std::string &name, const Bytes &bytes) {
  std::string path = tempPath(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

Bytes readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes little(uint64_t value, int count) {
  Bytes bytes;
  for (int i = 0; i < count; ++i)
    bytes += char(value >> (8 * i) & 0xff);
  return bytes;
}

Bytes npy(const std::string &header, const Bytes &data, int version = 1) {
  return Bytes("\x93NUMPY") + char(version) + '\0' +
         little(header.size(), version == 1 ? 2 : 4) + header + data;
}

Bytes npyOf(const std::string &descr, const std::string &shape,
            const Bytes &data, bool fortran = false) {
  return npy("{'descr': '" + descr + "', 'fortran_order': " +
                 (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n",
             data);
}

std::optional<Array> parse(const Bytes &bytes, std::string &error) {
  // An allocation of the exact size, for the address sanitizer.
  std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  return parseNpy(exact.data(), exact.size(), "x.npy", error);
}

/// The message after "cannot read 'x.npy': ", from both readers.
std::string problemOf(const Bytes &bytes) {
  std::string error, fileError;
  EXPECT_FALSE(parse(bytes, error));
  std::string path = writeFile("bad.npy", bytes);
  EXPECT_FALSE(readNpy(path, fileError));
  std::string prefix = "cannot read 'x.npy': ";
  std::string filePrefix = "cannot read '" + path + "': ";
  EXPECT_EQ(error.substr(0, prefix.size()), prefix);
  EXPECT_EQ(fileError.substr(0, filePrefix.size()), filePrefix);
  std::string problem = error.substr(prefix.size());
  EXPECT_EQ(problem, fileError.substr(filePrefix.size()));
  return problem;
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

TEST(Npy, RoundTrips) {
  std::vector<double> values = {0, -1, 2, 3.5, -4, 100};
  for (Type type :
       {Type::F32, Type::F16, Type::BF16, Type::F64, Type::I32, Type::I64}) {
    for (const std::vector<int64_t> &shape :
         {std::vector<int64_t>{6}, {2, 3}, {1, 3, 2, 1}}) {
      Array array = fromDoubles(values, shape, type);
      std::string path = tempPath("a.npy"), error;
      ASSERT_TRUE(writeNpy(path, array, error)) << error;
      std::optional<Array> back = readNpy(path, error);
      ASSERT_TRUE(back) << error;
      EXPECT_EQ(back->type, type);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->data, array.data);
      EXPECT_EQ(back->numElements(), 6);
      Bytes bytes = readFile(path);
      EXPECT_EQ((bytes.size() - array.data.size()) % 64, 0u);
      ASSERT_TRUE(parse(bytes, error)) << error;
    }
  }
}

TEST(Npy, ScalarsAndEmptyArrays) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {0}, {3, 0, 2}}) {
    Array array =
        fromDoubles(std::vector<double>(shape.empty(), 7.0), shape, Type::F32);
    std::string path = tempPath("a.npy"), error;
    ASSERT_TRUE(writeNpy(path, array, error)) << error;
    std::optional<Array> back = readNpy(path, error);
    ASSERT_TRUE(back) << error;
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(back->data, array.data);
  }
}

TEST(Npy, WritesWhatNumPyWrites) {
  std::string path = tempPath("a.npy"), error;
  ASSERT_TRUE(writeNpy(path, fromDoubles({1, 2}, {2}, Type::F32), error));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(2,), }";
  header.resize(117, ' ');
  header += '\n';
  EXPECT_EQ(readFile(path), npy(header, Bytes("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST(Npy, AllVersionsAndSpellings) {
  Bytes data = little(5, 4) + little(6, 4);
  for (int version : {1, 2, 3}) {
    for (const char *header :
         {"{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n",
          "{\"shape\":(2L,),\"fortran_order\":True,\"descr\":\"<i4\"}",
          " { 'shape' : ( 2 , ) , 'descr' : '<i4' , 'fortran_order' : False } ",
          "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 1)}"}) {
      std::string error;
      std::optional<Array> array = parse(npy(header, data, version), error);
      ASSERT_TRUE(array) << error;
      EXPECT_EQ(toDoubles(*array), (std::vector<double>{5, 6}));
    }
  }
}

TEST(Npy, FortranOrder) {
  // Element (i, j, k) of 2 x 3 x 2 is 100 i + 10 j + k.
  Bytes data;
  std::vector<double> expected;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i)
        data += little(100 * i + 10 * j + k, 8);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k)
        expected.push_back(100 * i + 10 * j + k);
  std::string error;
  std::optional<Array> array =
      parse(npyOf("<i8", "(2, 3, 2)", data, true), error);
  ASSERT_TRUE(array) << error;
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(toDoubles(*array), expected);
  array = parse(npyOf("<i8", "(2, 0, 2)", "", true), error);
  ASSERT_TRUE(array) << error;
}

TEST(Npy, BFloat16IsTwoByteVoid) {
  for (const char *descr : {"<V2", "|V2"}) {
    std::string error;
    std::optional<Array> array =
        parse(npyOf(descr, "(2,)", Bytes("\x80\x3f\x20\xc0", 4)), error);
    ASSERT_TRUE(array) << error;
    EXPECT_EQ(array->type, Type::BF16);
    EXPECT_EQ(toDoubles(*array), (std::vector<double>{1, -2.5}));
  }
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_EQ(problemOf(""), "not a .npy file");
  EXPECT_EQ(problemOf("\x93NUMPY"), "not a .npy file");
  EXPECT_EQ(problemOf("PK\3\4 something else"), "not a .npy file");
  EXPECT_EQ(problemOf(npy("", "", 4)),
            "version 4 of the format is not supported; expected 1, 2 or 3");
  EXPECT_EQ(problemOf(Bytes("\x93NUMPY\1\0\x50", 9)),
            "the header is cut short");
  EXPECT_EQ(problemOf(Bytes("\x93NUMPY\1\0\x50\0{", 11)),
            "the header is cut short");
  EXPECT_EQ(problemOf(Bytes("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)),
            "the header is 4294967295 bytes long; expected at most 1048576");
  EXPECT_EQ(problemOf(npyOf("<f4", "(2,)", "1234")),
            "the shape calls for 8 bytes of data, but there are 4");
  EXPECT_EQ(problemOf(npyOf("<f4", "(1,)", "123456")),
            "the shape calls for 4 bytes of data, but there are 6");
  EXPECT_EQ(problemOf(npyOf("<f4", "(1000000000000,)", "1234")),
            "the shape calls for 4000000000000 bytes of data, but there are 4");

  auto header = [](const std::string &text) {
    std::string problem = problemOf(npy(text, ""));
    EXPECT_EQ(problem.substr(0, 12), "bad header: ");
    return problem.substr(12);
  };
  std::string order = "'fortran_order': False, ";
  EXPECT_EQ(header(""), "expected a dictionary");
  EXPECT_EQ(header("{"), "expected a string at offset 1");
  EXPECT_EQ(header("{'descr"), "a string does not end");
  EXPECT_EQ(header("{'descr' '<f4'}"), "expected ':' after 'descr'");
  EXPECT_EQ(header("{}"), "key 'descr' is missing");
  EXPECT_EQ(header("{'descr': '<f4'}"), "key 'fortran_order' is missing");
  EXPECT_EQ(header("{'descr': '<f4', " + order + "}"),
            "key 'shape' is missing");
  EXPECT_EQ(header("{'descr': '<f4', 'descr': '<f4'}"),
            "key 'descr' appears twice");
  EXPECT_EQ(header("{'name': '<f4'}"), "unexpected key 'name'");
  EXPECT_EQ(header("{'fortran_order': 1}"),
            "expected 'fortran_order' to be True or False");
  EXPECT_EQ(header("{'shape': 3}"), "expected 'shape' to be a tuple");
  EXPECT_EQ(header("{'shape': (3"), "expected 'shape' to be a tuple of "
                                    "numbers");
  EXPECT_EQ(header("{'shape': (-1,)}"),
            "expected the sizes in 'shape' to be natural numbers");
  EXPECT_EQ(header("{'shape': (99999999999999999999,)}"),
            "a size in 'shape' does not fit 64 bits");
  EXPECT_EQ(header("{'descr': [('a', '<f4')]}"),
            "structured types are not supported");
  EXPECT_EQ(header("{'descr': '>f4'}"),
            "big endian data ('>f4') is not supported");
  EXPECT_EQ(header("{'descr': '<u2'}"),
            "element type '<u2' is not supported; expected <f4, <f2, <f8, <i4, "
            "<i8, or <V2 (bfloat16)");
  std::string rest = "{'descr': '<f4', " + order + "'shape': ";
  EXPECT_EQ(header(rest + "()} x"), "unexpected text after the dictionary");
  EXPECT_EQ(header(rest + "() x"),
            "expected ',' or '}' after the value of 'shape'");
  std::string tooLarge = "the shape holds more bytes than 64 bits can count";
  EXPECT_EQ(header(rest + "(4294967296, 4294967296)}"), tooLarge);
  EXPECT_EQ(header(rest + "(4611686018427387904,)}"), tooLarge);
  // Without elements too: 4294967296 * 4294967296 may be computed by someone.
  EXPECT_EQ(header(rest + "(0, 4294967296, 4294967296)}"), tooLarge);
  std::string ones = "(";
  for (int i = 0; i < 65; ++i)
    ones += "1,";
  EXPECT_EQ(header(rest + ones + ")}"), "expected at most 64 dimensions");
}

TEST(Npy, EveryTruncationFails) {
  Bytes whole = npyOf("<f4", "(2, 2)", Bytes(16, '\1'));
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string error;
    EXPECT_FALSE(parse(whole.substr(0, size), error)) << size;
    EXPECT_FALSE(error.empty());
  }
}

TEST(Npy, DamagedBytesNeverCrash) {
  Bytes whole = npyOf("<f4", "(2, 2)", Bytes(16, '\1'), true);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes damaged = whole;
      damaged[at] = char(value);
      std::string error;
      std::optional<Array> array = parse(damaged, error);
      ASSERT_NE(array.has_value(), !error.empty());
      if (array) {
        ASSERT_LE(array->data.size(), whole.size());
      }
    }
  }
}

TEST(Npy, FilesThatCannotBeRead) {
  std::string error;
  EXPECT_FALSE(readNpy("/nowhere/a.npy", error));
  EXPECT_EQ(error, "cannot read '/nowhere/a.npy': No such file or directory");
  EXPECT_FALSE(readNpy(testing::TempDir(), error));
  EXPECT_FALSE(readNpz("/nowhere/a.npz", error));
  EXPECT_FALSE(writeNpy("/nowhere/a.npy", Array{Type::F32, {0}, {}}, error));
  EXPECT_EQ(error, "cannot write '/nowhere/a.npy': No such file or directory");
}

//===----------------------------------------------------------------------===//
// .npz
//===----------------------------------------------------------------------===//

struct ZipMember {
  std::string name;
  Bytes data;
  bool deflated = false;
  // What a hostile writer may change.
  std::optional<uint32_t> size = {}, packedSize = {}, offset = {};
  uint32_t method = 0, flags = 0, crcError = 0;
};

Bytes deflated(const Bytes &data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, data.size()), '\0');
  stream.next_in = (Bytef *)data.data();
  stream.avail_in = data.size();
  stream.next_out = (Bytef *)packed.data();
  stream.avail_out = packed.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes zip(const std::vector<ZipMember> &members) {
  Bytes body, directory;
  for (const ZipMember &m : members) {
    Bytes packed = m.deflated ? deflated(m.data) : m.data;
    uint32_t crc =
        crc32(0, (const Bytef *)m.data.data(), m.data.size()) + m.crcError;
    uint32_t method = m.deflated ? 8 : m.method;
    // NumPy forces a zip64 local header, whose sizes stand in the extra field.
    Bytes extra = little(1, 2) + little(16, 2) + little(m.data.size(), 8) +
                  little(packed.size(), 8);
    directory +=
        little(0x02014b50, 4) + little(45, 2) + little(45, 2) +
        little(m.flags, 2) + little(method, 2) + little(0, 4) + little(crc, 4) +
        little(m.packedSize.value_or(packed.size()), 4) +
        little(m.size.value_or(m.data.size()), 4) + little(m.name.size(), 2) +
        Bytes(12, '\0') + little(m.offset.value_or(body.size()), 4) + m.name;
    body += little(0x04034b50, 4) + little(45, 2) + little(m.flags, 2) +
            little(method, 2) + little(0, 4) + little(crc, 4) +
            little(0xffffffff, 4) + little(0xffffffff, 4) +
            little(m.name.size(), 2) + little(extra.size(), 2) + m.name +
            extra + packed;
  }
  return body + directory + little(0x06054b50, 4) + little(0, 4) +
         little(members.size(), 2) + little(members.size(), 2) +
         little(directory.size(), 4) + little(body.size(), 4) + little(0, 2);
}

Bytes numbers(int count) {
  Bytes data;
  for (int i = 0; i < count; ++i)
    data += little(i, 4);
  return npyOf("<i4", "(" + std::to_string(count) + ",)", data);
}

std::string zipProblem(const Bytes &bytes) {
  std::string error, path = writeFile("bad.npz", bytes);
  EXPECT_FALSE(readNpz(path, error));
  std::string prefix = "cannot read '" + path;
  EXPECT_EQ(error.substr(0, prefix.size()), prefix);
  return error.substr(std::min(error.size(), prefix.size()));
}

TEST(Npz, StoredAndDeflated) {
  ZipMember stored = {"q.npy", numbers(3)};
  ZipMember packed = {"k.npy", numbers(1000), true};
  ZipMember other = {"readme.txt", "not an array"};
  std::string path = writeFile("a.npz", zip({stored, packed, other})), error;
  auto arrays = readNpz(path, error);
  ASSERT_TRUE(arrays) << error;
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ(toDoubles(arrays->at("q")), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(toDoubles(arrays->at("k"))[999], 999);

  std::optional<Array> one = readNpz(path, "k", error);
  ASSERT_TRUE(one) << error;
  EXPECT_EQ(one->shape, (std::vector<int64_t>{1000}));
  EXPECT_FALSE(readNpz(path, "v", error));
  EXPECT_EQ(error, "cannot read '" + path +
                       "': there is no array 'v'; it has 'k' 'q'");

  // A comment may follow the archive, and an archive may be empty.
  Bytes commented = zip({stored});
  commented[commented.size() - 2] = 5;
  path = writeFile("a.npz", commented + "hello");
  EXPECT_TRUE(readNpz(path, error)) << error;
  path = writeFile("a.npz", zip({}));
  EXPECT_TRUE(readNpz(path, error)) << error;
}

TEST(Npz, SaysWhatIsWrong) {
  EXPECT_EQ(zipProblem(""), "': not a .npz file");
  EXPECT_EQ(zipProblem(numbers(9)), "': not a .npz file, or cut short");
  ZipMember m = {"q.npy", numbers(3)};
  EXPECT_EQ(zipProblem(zip({m, m})), "': array 'q' appears twice");
  m.flags = 1;
  EXPECT_EQ(zipProblem(zip({m})), "': member 'q.npy' is encrypted");
  m.flags = 0;
  m.method = 12;
  EXPECT_EQ(zipProblem(zip({m})),
            "': member 'q.npy' is packed by method 12; expected 0 (stored) or "
            "8 (deflated)");
  m.method = 0;
  m.crcError = 1;
  EXPECT_EQ(zipProblem(zip({m})),
            "': member 'q.npy' is damaged: its checksum is wrong");
  m.crcError = 0;
  m.size = 4;
  EXPECT_EQ(zipProblem(zip({m})), "': member 'q.npy' is damaged");
  m.size = 0xffffffff;
  EXPECT_EQ(zipProblem(zip({m})),
            "': member 'q.npy' has 4 GiB or more: zip64 is not supported");
  m.size.reset();
  m.packedSize = 100000;
  EXPECT_EQ(zipProblem(zip({m})), "': the members of the archive overlap");
  m.packedSize.reset();
  for (uint32_t offset : {1u, 300u, 0xfffffffeu}) {
    m.offset = offset;
    EXPECT_EQ(zipProblem(zip({m})), "': member 'q.npy' is out of bounds");
  }
  m.offset.reset();

  m.deflated = true;
  m.size = 0xfffffff0;
  EXPECT_EQ(zipProblem(zip({m})),
            "': member 'q.npy' cannot unpack to 4294967280 bytes");
  for (uint32_t size :
       {0u, uint32_t(m.data.size() - 1), uint32_t(m.data.size() + 1)}) {
    m.size = size;
    EXPECT_EQ(zipProblem(zip({m})), "': member 'q.npy' is damaged");
  }
  m = {"q.npy", "junk"};
  EXPECT_EQ(zipProblem(zip({m})), ":q.npy': not a .npy file");

  Bytes whole = zip({{"q.npy", numbers(3)}});
  Bytes zip64 = whole;
  zip64.replace(zip64.size() - 6, 4, Bytes(4, '\xff'));
  EXPECT_EQ(zipProblem(zip64), "': zip64 archives are not supported");
  Bytes volumes = whole;
  volumes[volumes.size() - 18] = 1;
  EXPECT_EQ(zipProblem(volumes),
            "': archives of several volumes are not supported");
  Bytes outside = whole;
  outside[outside.size() - 3] = 1;
  EXPECT_EQ(zipProblem(outside),
            "': the directory of the archive is out of bounds");
  Bytes broken = whole;
  broken[broken.size() - 14] = broken[broken.size() - 12] = 2;
  EXPECT_EQ(zipProblem(broken), "': the directory of the archive is broken");
}

TEST(Npz, DamagedBytesNeverCrash) {
  Bytes whole = zip({{"q.npy", numbers(2)}, {"k.npy", numbers(60), true}});
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      Bytes damaged = whole;
      damaged[at] = char(value);
      std::string error, path = writeFile("a.npz", damaged);
      auto arrays = readNpz(path, error);
      ASSERT_NE(arrays.has_value(), !error.empty());
    }
    std::string error, path = writeFile("a.npz", whole.substr(0, at));
    EXPECT_FALSE(readNpz(path, error));
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(Convert, BFloat16) {
  const struct {
    uint32_t from;
    uint16_t to;
  } cases[] = {
      {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80},
      {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, // A tie, to even.
      {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, // A tie, to even.
      {0x3fffffff, 0x4000}, {0x7f7f7fff, 0x7f7f}, // The largest one.
      {0x7f7f8000, 0x7f80},                       // Overflow.
      {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
      {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001},
      {0x7f800001, 0x7fc0}, {0xff812345, 0xffc1}, // NaN.
      {0x7fffffff, 0x7fff},
  };
  for (const auto &c : cases)
    EXPECT_EQ(f32ToBf16(fromBits(c.from)), c.to) << std::hex << c.from;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    EXPECT_EQ(toBits(bf16ToF32(uint16_t(bits))), bits << 16);
    bool isNaN = (bits & 0x7fff) > 0x7f80;
    EXPECT_EQ(f32ToBf16(bf16ToF32(uint16_t(bits))), isNaN ? bits | 0x40 : bits);
  }
}

TEST(Convert, HalfKnownValues) {
  const struct {
    uint32_t from;
    uint16_t to;
  } cases[] = {
      {0x00000000, 0x0000}, {0x80000000, 0x8000},
      {0x3f800000, 0x3c00}, {0xc0200000, 0xc100},
      {0x3f801000, 0x3c00},                       // A tie, to even.
      {0x3f801001, 0x3c01}, {0x3f803000, 0x3c02}, // A tie, to even.
      {0x477fe000, 0x7bff},                       // 65504, the largest one.
      {0x477fefff, 0x7bff}, {0x477ff000, 0x7c00}, // 65520: overflow.
      {0x7f7fffff, 0x7c00}, {0xff800000, 0xfc00},
      {0x38800000, 0x0400}, // 2^-14, the smallest normal one.
      {0x387fffff, 0x0400}, {0x387fc000, 0x03ff}, // Subnormal.
      {0x33800000, 0x0001},                       // 2^-24, the smallest one.
      {0x33000000, 0x0000}, {0x33000001, 0x0001}, // Half of it: a tie.
      {0xb3c00000, 0x8002},                       // 1.5 * 2^-24: a tie.
      {0x00000001, 0x0000}, {0x7f800001, 0x7e00}, // NaN.
      {0xff802000, 0xfe01}, {0x7fffffff, 0x7fff},
  };
  for (const auto &c : cases)
    EXPECT_EQ(f32ToF16(fromBits(c.from)), c.to) << std::hex << c.from;
}

TEST(Convert, HalfRoundsToTheNearest) {
  // All halves are exact, and between neighbours the middle decides.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    float value = f16ToF32(uint16_t(bits));
    ASSERT_EQ(f32ToF16(value), bits);
    ASSERT_EQ(f32ToF16(-value), bits | 0x8000);
    double significand = bits < 0x400 ? bits : 0x400 | (bits & 0x3ff);
    ASSERT_EQ(value, std::ldexp(significand,
                                bits < 0x400 ? -24 : int(bits >> 10) - 25));
    if (bits == 0x7bff)
      continue;
    float middle = (value + f16ToF32(uint16_t(bits + 1))) / 2;
    ASSERT_EQ(f32ToF16(middle), bits + (bits & 1));
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 1e9f)), bits + 1);
  }
  EXPECT_EQ(f16ToF32(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16ToF32(0xfc01)));
}

TEST(Convert, DoublesRoundOnce) {
  // Just above a middle, by less than a float can tell.
  auto bits = [](double value, Type type) {
    Array array = fromDoubles({value}, {1}, type);
    return array.data[0] | array.data[1] << 8;
  };
  for (double sign : {1.0, -1.0}) {
    int signBit = sign < 0 ? 0x8000 : 0;
    EXPECT_EQ(bits(sign * (1 + 0x1p-8), Type::BF16), signBit | 0x3f80);
    EXPECT_EQ(bits(sign * (1 + 0x1p-8 + 0x1p-40), Type::BF16),
              signBit | 0x3f81);
    EXPECT_EQ(bits(sign * (1 + 0x3p-8 - 0x1p-40), Type::BF16),
              signBit | 0x3f81);
    EXPECT_EQ(bits(sign * (1 + 0x1p-11), Type::F16), signBit | 0x3c00);
    EXPECT_EQ(bits(sign * (1 + 0x1p-11 + 0x1p-40), Type::F16),
              signBit | 0x3c01);
    EXPECT_EQ(bits(sign * (1 + 0x3p-11 - 0x1p-40), Type::F16),
              signBit | 0x3c01);
    EXPECT_EQ(bits(sign * 1e300, Type::BF16), signBit | 0x7f80);
    EXPECT_EQ(bits(sign * 1e300, Type::F16), signBit | 0x7c00);
    EXPECT_EQ(bits(sign * 1e-300, Type::BF16), signBit);
    EXPECT_EQ(bits(sign * std::numeric_limits<double>::infinity(), Type::F16),
              signBit | 0x7c00);
  }
  EXPECT_TRUE(
      std::isnan(toDoubles(fromDoubles({std::nan("")}, {1}, Type::BF16))[0]));
}

TEST(Convert, Integers) {
  std::vector<double> values = {-1.9, 1e300, -1e300, std::nan(""), 7};
  EXPECT_EQ(toDoubles(fromDoubles(values, {5}, Type::I32)),
            (std::vector<double>{-1, 2147483647, -2147483648.0, 0, 7}));
  EXPECT_EQ(toDoubles(fromDoubles(values, {5}, Type::I64)),
            (std::vector<double>{-1, 0x1p63, -0x1p63, 0, 7}));
}

} // namespace
