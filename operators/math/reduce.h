// Sums whose order is fixed: eight running sums, added at the end, so that the compiler may use vector
// registers and every build gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// The sum of term(0) ... term(count - 1), in Sum's precision.
template <typename Sum, typename Term>
Sum SumOf(std::int64_t count, Term term) {
  constexpr std::int64_t kLanes = 8;
  Sum lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<Sum>(term(i + lane));
  }
  for (; i < count; ++i) lanes[i % kLanes] += static_cast<Sum>(term(i));
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace penstock
