// Half precision (IEEE 754 binary16), as tensors store it. Arithmetic uses floats.
#pragma once

#include <bit>
#include <cstdint>

#include "framework/tensor/dtype.h"

namespace penstock {

struct Half {
  std::uint16_t bits;  // sign, 5 of exponent, 10 of fraction
};

template <>
struct DTypeOfT<Half> {
  static constexpr DType kValue = DType::kFp16;
};

constexpr float FloatOf(Half half) {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t exponent = half.bits >> 10 & 0x1fu;
  const std::uint32_t fraction = half.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);  // infinite, or NaN
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return sign == 0 ? subnormal : -subnormal;
}

// Rounds to nearest, ties to even. Values from 65520 on become infinity.
constexpr Half HalfOf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t size = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (size > 0x7f800000u) {
    half = 0x7e00;  // NaN
  } else if (size >= 0x477ff000u) {
    half = 0x7c00;
  } else if (size < 0x38800000u) {
    // Subnormal, a multiple of 2^-24. Adding 0.5 rounds to such a multiple, because the last bit of a float
    // from 0.5 to 1 is worth 2^-24.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  } else {
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace penstock
