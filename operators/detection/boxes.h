// Areas and overlaps of boxes (x1, y1, x2, y2). If coordinates are in pixels ("not normalised"), a box
// includes its last pixel, so its extents are larger by one.
#pragma once

#include <algorithm>
#include <cmath>

#include "framework/tensor/shape.h"

namespace penstock {

// Returns the area; 0 for a box whose end lies before its beginning.
template <typename T>
T BoxArea(const T* box, bool normalized) {
  if (box[2] < box[0] || box[3] < box[1]) return T{0};
  const T more = normalized ? T{0} : T{1};
  return (box[2] - box[0] + more) * (box[3] - box[1] + more);
}

// Returns the intersection over union of two boxes; 0 if they do not overlap.
template <typename T>
T BoxOverlap(const T* a, const T* b, bool normalized) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return T{0};
  const T more = normalized ? T{0} : T{1};
  const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + more;
  const T height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + more;
  const T common = width * height;
  return common / (BoxArea(a, normalized) + BoxArea(b, normalized) - common);
}

// The centre and extents of a box.
template <typename T>
struct CentredBox {
  T x{}, y{}, width{}, height{};
};
template <typename T>
CentredBox<T> CentreOf(const T* box, bool normalized) {
  const T more = normalized ? T{0} : T{1};
  const T width = box[2] - box[0] + more, height = box[3] - box[1] + more;
  return {box[0] + width / 2, box[1] + height / 2, width, height};
}

}  // namespace penstock
