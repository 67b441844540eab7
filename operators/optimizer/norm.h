// The norm of a whole tensor, for optimizers whose step depends on it; such an optimizer is not element-wise,
// so its parameters are not cut.
#pragma once

#include <cmath>
#include <span>

namespace penstock {

// The root of the sum of squares, added up in double: the same for any order of magnitude of the count.
template <typename T>
T Norm(std::span<const T> values) {
  double squares = 0;
  for (const T element : values) {
    const double value = static_cast<double>(element);
    squares += value * value;
  }
  return static_cast<T>(std::sqrt(squares));
}

}  // namespace penstock
