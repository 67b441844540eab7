// Sums and maxima whose order is fixed: eight running ones, joined at the end, so that the compiler may use
// vector registers and every build gives the same bytes.
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

// The largest of term(0) ... term(count - 1), of at least one. If term(0) is a NaN so is the result; others
// do not count.
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
