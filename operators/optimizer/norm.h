// The L2 norm of a whole tensor, for optimizers whose step depends on it. Such an optimizer is not
// elementwise, so its parameters are not sliced.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "operators/common/reduce.h"

namespace penstock {

// Returns the square root of the sum of squares, summed in double so that the precision does not depend on
// the number of elements.
template <typename T>
T Norm(std::span<const T> values) {
  return static_cast<T>(std::sqrt(TotalOfSquares(values.data(), static_cast<Dim>(values.size()))));
}

}  // namespace penstock
