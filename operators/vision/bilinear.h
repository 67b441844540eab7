// Bilinear interpolation at a point between four pixels of a plane.
#pragma once

#include <cmath>

#include "framework/tensor/shape.h"

namespace penstock {

// Pixels outside the plane are zero. A point far outside, or with a NaN coordinate, has no pixels.
template <typename T>
struct BilinearPoint {
  struct Corner {
    Dim at = -1;  // index in the plane; -1: outside
    T weight{};
    T dy{}, dx{};  // the derivatives of the weight
  };
  Corner corners[4];

  BilinearPoint(T y, T x, Dim height, Dim width) {
    const bool is_near = y > T{-1} && x > T{-1} && y < static_cast<T>(height) && x < static_cast<T>(width);
    if (!is_near) return;
    const T top = std::floor(y), left = std::floor(x), v = y - top, u = x - left;
    const Dim row = static_cast<Dim>(top), column = static_cast<Dim>(left);
    const auto place = [&](Dim i, Dim j) {
      return i < 0 || j < 0 || i >= height || j >= width ? Dim{-1} : i * width + j;
    };
    corners[0] = {place(row, column), (1 - v) * (1 - u), u - 1, v - 1};
    corners[1] = {place(row, column + 1), (1 - v) * u, -u, 1 - v};
    corners[2] = {place(row + 1, column), v * (1 - u), 1 - u, -v};
    corners[3] = {place(row + 1, column + 1), v * u, u, v};
  }
  T Of(const T* plane) const {
    T sum{};
    for (const Corner& c : corners) {
      if (c.at >= 0) sum += c.weight * plane[c.at];
    }
    return sum;
  }
  // Adds `amount` to the plane, distributed among the pixels by their weights.
  void Add(T amount, T* plane) const {
    for (const Corner& c : corners) {
      if (c.at >= 0) plane[c.at] += c.weight * amount;
    }
  }
  // Adds `amount` times the derivatives of Of by y and x to `dy` and `dx`.
  void AddSlopes(const T* plane, T amount, T& dy, T& dx) const {
    for (const Corner& c : corners) {
      if (c.at < 0) continue;
      dy += c.dy * plane[c.at] * amount;
      dx += c.dx * plane[c.at] * amount;
    }
  }
};

}  // namespace penstock
