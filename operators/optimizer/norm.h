// The norm of a whole tensor, for optimizers whose step depends on it; such an optimizer is not element-wise,
// so its parameters are not cut.
#pragma once

#include <cmath>
#include <cstdint>

namespace penstock {

// The root of the sum of squares, added up in double: the same for any order of magnitude of the count.
template <typename T>
T Norm(const T* values, std::int64_t count) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    squares += value * value;
  }
  return static_cast<T>(std::sqrt(squares));
}

}  // namespace penstock
