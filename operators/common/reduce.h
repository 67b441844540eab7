// Sums and maxima in a fixed order: eight partial results, combined at the end. The compiler can use vector
// registers, and every build gives the same bytes. Sums of whole tensors of floats use
// framework/vector/sums.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "framework/vector/sums.h"
#include "operators/common/parallel.h"

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

// Returns part(begin, end) + part(end, ...) ..., for consecutive parts of [0, count), which the threads of
// the run compute. The parts depend on `count` alone and are added in their order.
template <typename Part>
double SumOfParts(Dim count, double element_ns, const Part& part) {
  constexpr Dim kPartsMax = 64, kLeast = 1 << 14, kGranule = 64;
  const Dim even = (count + kPartsMax - 1) / kPartsMax;
  const Dim size = std::max(kLeast, (even + kGranule - 1) / kGranule * kGranule);
  if (count <= size) return part(Dim{0}, count);
  const Dim parts = (count + size - 1) / size;
  std::array<double, kPartsMax> sums;
  ForRows(parts, element_ns * static_cast<double>(size), [&](Dim begin, Dim end) {
    for (Dim i = begin; i < end; ++i)
      sums[static_cast<std::size_t>(i)] = part(i * size, std::min(count, (i + 1) * size));
  });
  double sum = 0;
  for (Dim i = 0; i < parts; ++i) sum += sums[static_cast<std::size_t>(i)];
  return sum;
}

// Return the sum of all elements, and of their squares, in double precision.
template <typename T>
double TotalOf(const T* x, Dim count) {
  return SumOfParts(count, StreamNs<T>(1), [x](Dim begin, Dim end) {
    if constexpr (std::is_same_v<T, float>) return vec::Sum(x + begin, static_cast<std::size_t>(end - begin));
    return SumOf<double>(end - begin, [=](Dim i) { return x[begin + i]; });
  });
}
template <typename T>
double TotalOfSquares(const T* x, Dim count) {
  return SumOfParts(count, StreamNs<T>(1), [x](Dim begin, Dim end) {
    if constexpr (std::is_same_v<T, float>)
      return vec::SumOfSquares(x + begin, static_cast<std::size_t>(end - begin));
    return SumOf<double>(end - begin, [=](Dim i) {
      return static_cast<double>(x[begin + i]) * static_cast<double>(x[begin + i]);
    });
  });
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
