// Sums and maxima in a fixed order: eight partial results, combined at the end. The compiler can use vector
// registers, and every build gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Returns the sum of term(0) ... term(count - 1), computed in type Sum.
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

// Returns the largest of term(0) ... term(count - 1); count must be at least 1. If term(0) is NaN, the result
// is NaN; NaN in other terms is ignored.
template <typename T, typename Term>
T MaxOf(std::int64_t count, Term term) {
  constexpr std::int64_t kLanes = 8;
  T first = term(0);
  if (count < 2 * kLanes) {
    for (std::int64_t i = 1; i < count; ++i) {
      const T value = term(i);
      first = first < value ? value : first;
    }
    return first;
  }
  T lanes[kLanes] = {first, first, first, first, first, first, first, first};
  const auto join = [&lanes](std::int64_t lane, T value) {
    lanes[lane] = lanes[lane] < value ? value : lanes[lane];
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) join(lane, term(i + lane));
  }
  for (; i < count; ++i) join(i % kLanes, term(i));
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) join(lane, lanes[lane + width]);
  }
  return lanes[0];
}

}  // namespace penstock
