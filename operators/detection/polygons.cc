#include "operators/detection/polygons.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace penstock {
namespace {

struct Point {
  double x = 0, y = 0;
};

double Cross(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

double SignedArea(std::span<const double> corners) {
  double twice = 0;
  const std::size_t count = corners.size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) % count;
    twice += corners[2 * i] * corners[2 * next + 1] - corners[2 * next] * corners[2 * i + 1];
  }
  return twice / 2;
}

// Returns the area of the intersection of two counterclockwise triangles: clips one by the sides of the
// other.
double CommonOfTriangles(const std::array<Point, 3>& a, const std::array<Point, 3>& b) {
  std::array<Point, 8> kept = {a[0], a[1], a[2]}, next;
  std::size_t count = 3;
  for (std::size_t side = 0; side < 3 && count > 0; ++side) {
    const Point &from = b[side], &to = b[(side + 1) % 3];
    std::size_t cut = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Point &p = kept[i], &q = kept[(i + 1) % count];
      const double of_p = Cross(from, to, p), of_q = Cross(from, to, q);
      if (of_p >= 0) next[cut++] = p;
      if ((of_p > 0 && of_q < 0) || (of_p < 0 && of_q > 0)) {
        const double t = of_p / (of_p - of_q);
        next[cut++] = {p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)};
      }
    }
    kept = next;
    count = cut;
  }
  double twice = 0;
  for (std::size_t i = 1; i + 1 < count; ++i) twice += Cross(kept[0], kept[i], kept[i + 1]);
  return twice / 2;
}

// Returns triangle i of the fan around the first corner, made counterclockwise, and the sign of its
// orientation.
double Fan(std::span<const double> corners, std::size_t i, std::array<Point, 3>& triangle) {
  const auto at = [&](std::size_t corner) { return Point{corners[2 * corner], corners[2 * corner + 1]}; };
  triangle = {at(0), at(i + 1), at(i + 2)};
  const double turn = Cross(triangle[0], triangle[1], triangle[2]);
  if (turn < 0) std::swap(triangle[1], triangle[2]);
  return turn > 0 ? 1 : turn < 0 ? -1 : 0;
}

}  // namespace

double PolygonArea(std::span<const double> corners) { return std::abs(SignedArea(corners)); }

// For a point inside a polygon, the orientation signs of the fan's triangles that cover it add up to one.
// Therefore the area of an intersection is the signed sum over all pairs of triangles.
double CommonArea(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  std::array<Point, 3> first, second;
  for (std::size_t i = 0; 2 * i + 4 < a.size(); ++i) {
    const double sign = Fan(a, i, first);
    if (sign == 0) continue;
    for (std::size_t j = 0; 2 * j + 4 < b.size(); ++j) {
      const double other = Fan(b, j, second);
      if (other != 0) sum += sign * other * CommonOfTriangles(first, second);
    }
  }
  return std::abs(sum);
}

}  // namespace penstock
