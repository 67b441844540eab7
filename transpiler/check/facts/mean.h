// Recognises the factor that turns a sum into a mean.
#pragma once

#include <cmath>

namespace penstock::check {

// Whether `scale` times a sum of `count` values is their mean, to float precision. False for NaN.
inline bool TakesMeanOf(float scale, int count) {
  constexpr double kTolerance = 1e-6;
  return std::abs(static_cast<double>(scale) * count - 1) <= kTolerance;
}

}  // namespace penstock::check
