// Means of the windows of a plane whose rows are contiguous, and their gradient, by rows: the elements under
// a row of windows are first added by columns, which are then added for each window.
#pragma once

#include <algorithm>
#include <array>

#include "operators/nn/pool.h"

namespace penstock {

inline constexpr Dim kPoolMeansWidthMax = 1024;  // of the plane

// divisor(ranges) is the divisor of the window over `ranges`.
template <typename T, typename Divisor>
void MeansOfPlane(const PoolGeometry& g, const T* x, const Divisor& divisor, T* out) {
  const WindowAxis &rows = g.window.all()[1], &columns = g.window.all()[2];
  std::array<T, kPoolMeansWidthMax> sums;
  PoolRanges ranges;
  for (Dim o = 0; o < rows.out; ++o) {
    ranges[1] = UnderWindow(g, rows, o);
    std::fill_n(sums.begin(), columns.in, T{0});
    for (Dim i = ranges[1].begin; i < ranges[1].end; ++i) {
      const T* const row = x + i * columns.in;
      for (Dim j = 0; j < columns.in; ++j) sums[static_cast<std::size_t>(j)] += row[j];
    }
    for (Dim w = 0; w < columns.out; ++w) {
      ranges[2] = UnderWindow(g, columns, w);
      T sum = 0;
      for (Dim j = ranges[2].begin; j < ranges[2].end; ++j) sum += sums[static_cast<std::size_t>(j)];
      *out++ = sum / divisor(ranges);
    }
  }
}

template <typename T, typename Divisor>
void SpreadMeansOfPlane(const PoolGeometry& g, const T* dout, const Divisor& divisor, T* dx) {
  const WindowAxis &rows = g.window.all()[1], &columns = g.window.all()[2];
  std::fill_n(dx, rows.in * columns.in, T{0});
  std::array<T, kPoolMeansWidthMax> shares;
  PoolRanges ranges;
  for (Dim o = 0; o < rows.out; ++o) {
    ranges[1] = UnderWindow(g, rows, o);
    std::fill_n(shares.begin(), columns.in, T{0});
    for (Dim w = 0; w < columns.out; ++w) {
      ranges[2] = UnderWindow(g, columns, w);
      const T share = *dout++ / divisor(ranges);
      for (Dim j = ranges[2].begin; j < ranges[2].end; ++j) shares[static_cast<std::size_t>(j)] += share;
    }
    for (Dim i = ranges[1].begin; i < ranges[1].end; ++i) {
      T* const row = dx + i * columns.in;
      for (Dim j = 0; j < columns.in; ++j) row[j] += shares[static_cast<std::size_t>(j)];
    }
  }
}

}  // namespace penstock
