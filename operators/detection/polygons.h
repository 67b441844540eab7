// Areas and overlaps of simple polygons, whose corners are (x, y) one after the other.
#pragma once

#include <span>

namespace penstock {

// The area of a polygon; 0 of less than three corners.
double PolygonArea(std::span<const double> corners);
// The area that two polygons have in common. Neither may cross itself; they need not be convex.
double CommonArea(std::span<const double> a, std::span<const double> b);

// What two polygons of `size` numbers have in common, divided by what they cover together.
template <typename T>
T PolygonOverlap(const T* a, const T* b, int size) {
  double first[32], second[32];
  for (int i = 0; i < size; ++i) {
    first[i] = static_cast<double>(a[i]);
    second[i] = static_cast<double>(b[i]);
  }
  const std::span<const double> of_a(first, static_cast<std::size_t>(size));
  const std::span<const double> of_b(second, static_cast<std::size_t>(size));
  const double common = CommonArea(of_a, of_b), together = PolygonArea(of_a) + PolygonArea(of_b) - common;
  return common > 0 && together > 0 ? static_cast<T>(common / together) : T{0};
}

}  // namespace penstock
