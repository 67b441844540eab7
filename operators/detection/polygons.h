// Areas and overlaps of simple polygons, given as the (x, y) of their corners in order.
#pragma once

#include <span>

namespace penstock {

// Returns the area of a polygon; 0 if it has less than three corners.
double PolygonArea(std::span<const double> corners);
// Returns the area of the intersection of two polygons. Neither may cross itself; they need not be convex.
double CommonArea(std::span<const double> a, std::span<const double> b);

// Returns the intersection over union of two polygons of `size` numbers each.
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
