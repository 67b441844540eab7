// Converts a number that an attribute or a formula gives as a float to an element of a tensor.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace penstock {

// Returns `value` as a T. For integers, truncates towards zero and clamps to the range of T; NaN becomes 0.
template <typename T>
T ElementFrom(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The smallest integer, and the largest plus one, are exact in double: 0 or powers of two.
    constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= kLeast)) return value < kLeast ? std::numeric_limits<T>::min() : T{0};
    if (value >= above) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace penstock
