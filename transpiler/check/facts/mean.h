// Factors that make a mean out of a sum.
#pragma once

#include <cmath>

namespace penstock::check {

// Whether `scale` times a sum over `count` is their mean, to float's precision. NaN is none.
inline bool TakesMeanOf(float scale, int count) {
  constexpr double kTolerance = 1e-6;
  return std::abs(static_cast<double>(scale) * count - 1) <= kTolerance;
}

}  // namespace penstock::check
