//===- Npy.h - NumPy's .npy and .npz files --------------------------------===//
//
// Reading .npy (versions 1 to 3) and .npz (stored or deflated members), writing
// .npy 1.0, and the conversions between element types. No function throws: each
// returns false or nothing and describes the problem, with the name of the
// file, in `error`. A file cannot make the reader allocate more than its own
// size can account for.
//
//===----------------------------------------------------------------------===//

#ifndef PISA_SUPPORT_NPY_H
#define PISA_SUPPORT_NPY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pisa::npy {

/// A contiguous, row major, little endian array.
struct Array {
  enum class Type { F32, F16, BF16, F64, I32, I64 };

  Type type = Type::F32;
  std::vector<int64_t> shape; ///< Empty for a scalar.
  std::vector<uint8_t> data;  ///< numElements() * elementSize(type) bytes.

  int64_t numElements() const;
};

/// Bytes of an element.
int64_t elementSize(Array::Type type);
/// "f32", "f16", "bf16", "f64", "i32" or "i64".
const char *typeName(Array::Type type);

/// Parses the bytes of a .npy file; `name` stands for it in messages.
std::optional<Array> parseNpy(const uint8_t *bytes, size_t size,
                              const std::string &name, std::string &error);

/// Reads a .npy file. Fortran order is transposed; bfloat16 is what ml_dtypes
/// saves, the two-byte void type '<V2' or '|V2'.
std::optional<Array> readNpy(const std::string &path, std::string &error);

/// Reads all arrays of a .npz file, by name without the ".npy". Members that
/// are no .npy files are left out.
std::optional<std::map<std::string, Array>> readNpz(const std::string &path,
                                                    std::string &error);

/// Reads one array of a .npz file.
std::optional<Array> readNpz(const std::string &path, const std::string &name,
                             std::string &error);

/// Writes a .npy file, version 1.0. bfloat16 becomes '<V2'.
bool writeNpy(const std::string &path, const Array &array, std::string &error);

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

// To the narrower type: to nearest, ties to even, overflow to infinity. NaN
// stays NaN with its sign and leading payload bits, and becomes quiet.
uint16_t f32ToBf16(float value);
uint16_t f32ToF16(float value);
// Exact.
float bf16ToF32(uint16_t bits);
float f16ToF32(uint16_t bits);

/// The elements as doubles; exact but for int64 beyond 2^53.
std::vector<double> toDoubles(const Array &array);

/// An array of `type` from doubles, each rounded once. Integers are truncated
/// and clamped to their range; NaN becomes 0. `values` must hold as many
/// elements as `shape`.
Array fromDoubles(const std::vector<double> &values,
                  const std::vector<int64_t> &shape, Array::Type type);

} // namespace pisa::npy

#endif // PISA_SUPPORT_NPY_H
