// A number that an attribute or a formula gives as a float, as an element of a tensor.
#pragma once

#include <limits>
#include <type_traits>

namespace penstock {

// Integers get its whole part, or the bound that lies nearest to it; NaN becomes 0.
template <typename T>
T ElementFrom(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The least integer is a power of two, so it and its negative, one above the largest, are exact.
    constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
    if (!(value >= kLeast)) return value < kLeast ? std::numeric_limits<T>::min() : T{0};
    if (value >= -kLeast) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace penstock
