// bfloat16: the upper half of a float's bits. Arithmetic uses floats.
#pragma once

#include <bit>
#include <cstdint>

namespace penstock {

struct BFloat16 {
  std::uint16_t bits;  // sign, 8 of exponent, 7 of fraction
};

constexpr float FloatOf(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Rounds to nearest, ties to even.
constexpr BFloat16 BFloat16Of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40u : rounded >> 16)};
}

}  // namespace penstock
