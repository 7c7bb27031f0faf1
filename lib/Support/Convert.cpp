//===- Convert.cpp - Conversions between element types --------------------===//

#include "pisa/Support/Npy.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace pisa::npy {

template <typename To, typename From> static To bitCast(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

/// value / 2^shift, to nearest, ties to even. 0 < shift < 32.
static uint32_t shiftRounding(uint32_t value, int shift) {
  uint32_t half = uint32_t(1) << (shift - 1);
  uint32_t odd = (value >> shift) & 1;
  return (value + half - 1 + odd) >> shift;
}

uint16_t f32ToBf16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if (std::isnan(value)) // Rounding could carry a NaN into infinity or zero.
    return uint16_t(bits >> 16) | 0x40;
  return uint16_t(shiftRounding(bits, 16));
}

float bf16ToF32(uint16_t bits) { return bitCast<float>(uint32_t(bits) << 16); }

uint16_t f32ToF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00 | uint16_t(magnitude >> 13 & 0x3ff);
  // 65520 lies halfway between the largest half and the next, even, one.
  if (magnitude >= bitCast<uint32_t>(65520.0f))
    return sign | 0x7c00;
  constexpr uint32_t smallestNormal = uint32_t(113) << 23; // 2^-14
  if (magnitude >= smallestNormal)
    // The exponent bias goes from 127 to 15; a carry out of the significand
    // moves the exponent up, as it should.
    return sign |
           uint16_t(shiftRounding(magnitude - (uint32_t(112) << 23), 13));
  // Subnormal: units of 2^-24, from a significand with its leading 1.
  int exponent = int(magnitude >> 23);
  int shift = 126 - exponent;
  if (shift > 24) // Below half of the smallest subnormal.
    return sign;
  return sign |
         uint16_t(shiftRounding((magnitude & 0x7fffff) | 0x800000, shift));
}

float f16ToF32(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return bitCast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return bitCast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float value = std::ldexp(float(fraction), -24);
  return sign ? -value : value;
}

/// Rounds to odd: an inexact result gets its last bit set. A second rounding to
/// at least two bits fewer then gives what rounding once would have given.
static float toFloatOdd(double value) {
  float result = float(value);
  if (std::isnan(value) || double(result) == value)
    return result;
  // Step back towards zero, which an overflow to infinity needs too.
  if (std::abs(double(result)) > std::abs(value))
    result = std::nextafter(result, 0.0f);
  return bitCast<float>(bitCast<uint32_t>(result) | 1);
}

template <typename T> static T toInteger(double value) {
  // The upper limit as a double may be one above the range; >= covers it.
  if (std::isnan(value))
    return 0;
  if (value >= double(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (value <= double(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return T(value);
}

template <typename T, typename Convert>
static std::vector<double> widen(const Array &array, Convert convert) {
  std::vector<double> result(array.data.size() / sizeof(T));
  for (size_t i = 0; i < result.size(); ++i) {
    T element;
    std::memcpy(&element, array.data.data() + i * sizeof(T), sizeof(T));
    result[i] = double(convert(element));
  }
  return result;
}

std::vector<double> toDoubles(const Array &array) {
  auto same = [](auto value) { return value; };
  switch (array.type) {
  case Array::Type::F32:
    return widen<float>(array, same);
  case Array::Type::F16:
    return widen<uint16_t>(array, f16ToF32);
  case Array::Type::BF16:
    return widen<uint16_t>(array, bf16ToF32);
  case Array::Type::F64:
    return widen<double>(array, same);
  case Array::Type::I32:
    return widen<int32_t>(array, same);
  case Array::Type::I64:
    return widen<int64_t>(array, same);
  }
  assert(false && "unknown type");
  return {};
}

Array fromDoubles(const std::vector<double> &values,
                  const std::vector<int64_t> &shape, Array::Type type) {
  Array array;
  array.type = type;
  array.shape = shape;
  assert(array.numElements() == int64_t(values.size()) && "wrong shape");
  array.data.resize(values.size() * elementSize(type));
  uint8_t *next = array.data.data();
  auto put = [&](auto element) {
    std::memcpy(next, &element, sizeof(element));
    next += sizeof(element);
  };
  for (double value : values) {
    switch (type) {
    case Array::Type::F32:
      put(float(value));
      break;
    case Array::Type::F16:
      put(f32ToF16(toFloatOdd(value)));
      break;
    case Array::Type::BF16:
      put(f32ToBf16(toFloatOdd(value)));
      break;
    case Array::Type::F64:
      put(value);
      break;
    case Array::Type::I32:
      put(toInteger<int32_t>(value));
      break;
    case Array::Type::I64:
      put(toInteger<int64_t>(value));
      break;
    }
  }
  return array;
}

} // namespace pisa::npy
