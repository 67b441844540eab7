#include "operators/math/broadcast.h"

#include <algorithm>
#include <cstdlib>

namespace penstock {
namespace {

// Returns `shape` extended by dimensions of 1 on both sides, its first dimension at position `axis`.
Shape Padded(const Shape& shape, int axis, int rank) {
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int at = i - axis;
    out.Append(at >= 0 && at < shape.rank() ? shape[at] : 1);
  }
  return out;
}

// Fluid accepts a vector written as a column instead of a vector: trailing dimensions of 1 that do not fit
// are dropped.
Shape Trimmed(const Shape& shape, int room) {
  Shape out = shape;
  while (out.rank() > room && out[out.rank() - 1] == 1) out = out.First(out.rank() - 1);
  return out;
}

}  // namespace

Result<AlignedShapes> AlignShapes(const Shape& x, const Shape& y, int axis) {
  const int rank = std::max(x.rank(), y.rank());
  const bool x_is_larger = x.rank() >= y.rank();
  const int at = axis == -1 || Compatible(x, y) ? std::abs(x.rank() - y.rank()) : axis;
  const bool inside = at >= 0 && at <= rank;
  const Shape smaller = Trimmed(x_is_larger ? y : x, inside ? rank - at : 0);
  if (!inside || at + smaller.rank() > rank) {
    return InvalidArgument("E-broadcast", "axis (", axis, ") must place ", smaller, " inside ",
                           x_is_larger ? x : y);
  }
  AlignedShapes aligned;
  aligned.x = x_is_larger ? x : Padded(smaller, at, rank);
  aligned.y = x_is_larger ? Padded(smaller, at, rank) : y;
  for (int i = 0; i < rank; ++i) {
    const Dim a = aligned.x[i];
    const Dim b = aligned.y[i];
    if (a != b && a > 1 && b > 1) {
      return InvalidArgument("E-broadcast", "X ", x, " and Y ", y, " differ in extent ", i, " (", a, " and ",
                             b, ") where neither is 1");
    }
    const bool known = a > 1 || b > 1 || a == b;
    aligned.out.Append(a == 0 || b == 0 ? 0 : known ? std::max(a, b) : kUnknownDim);
  }
  return aligned;
}

Result<BroadcastLoops> BroadcastLoops::Make(const Shape& x, const Shape& y, int axis) {
  PENSTOCK_ASSIGN_OR_RETURN(const AlignedShapes shapes, AlignShapes(x, y, axis));
  BroadcastLoops loops;
  std::vector<std::array<Dim, 3>> levels;  // extent, stride of X, stride of Y; innermost first
  Dim x_step = 1, y_step = 1;
  for (int i = shapes.out.rank() - 1; i >= 0; --i) {
    const Dim extent = shapes.out[i];
    const Dim x_stride = shapes.x[i] == 1 ? 0 : x_step;
    const Dim y_stride = shapes.y[i] == 1 ? 0 : y_step;
    x_step *= shapes.x[i];
    y_step *= shapes.y[i];
    if (extent == 1) continue;
    loops.x_repeats_ = loops.x_repeats_ || x_stride == 0;
    loops.y_repeats_ = loops.y_repeats_ || y_stride == 0;
    if (!levels.empty()) {
      std::array<Dim, 3>& last = levels.back();
      if (x_stride == last[1] * last[0] && y_stride == last[2] * last[0]) {
        last[0] *= extent;
        continue;
      }
    }
    levels.push_back({extent, x_stride, y_stride});
  }
  if (levels.size() > kMaxDepth) {
    return InvalidArgument("E-broadcast", "X ", x, " and Y ", y, " alternate more than ", kMaxDepth,
                           " times");
  }
  loops.depth_ = std::max<std::size_t>(levels.size(), 1);
  for (std::size_t d = 0; d < levels.size(); ++d) {
    loops.extent_[d] = levels[d][0];
    loops.x_stride_[d] = levels[d][1];
    loops.y_stride_[d] = levels[d][2];
    loops.out_stride_[d] = d == 0 ? 1 : loops.out_stride_[d - 1] * levels[d - 1][0];
    if (d > 0) loops.rows_ *= levels[d][0];
  }
  return loops;
}

std::size_t BroadcastLoops::LoopToDivide(Apart apart) const {
  constexpr Dim kMany = 16;
  std::size_t longest = kMaxDepth;
  for (std::size_t d = depth_; d-- > 0;) {
    const Dim stride = apart == Apart::kX ? x_stride_[d] : apart == Apart::kY ? y_stride_[d] : out_stride_[d];
    if (stride == 0) continue;
    if (extent_[d] >= kMany) return d;
    if (longest == kMaxDepth || extent_[d] > extent_[longest]) longest = d;
  }
  return longest;
}

BroadcastLoops BroadcastLoops::Range(std::size_t d, Dim begin, Dim end) const {
  BroadcastLoops part = *this;
  part.extent_[d] = end - begin;
  if (d > 0) part.rows_ = rows_ / extent_[d] * part.extent_[d];
  part.x_first_ += begin * x_stride_[d];
  part.y_first_ += begin * y_stride_[d];
  part.out_first_ += begin * out_stride_[d];
  return part;
}

Result<BroadcastLoops> LoopsOver(const KernelSetup& k, const Shape& x, const Shape& y, int axis) {
  Result<BroadcastLoops> loops = BroadcastLoops::Make(x, y, axis);
  if (!loops.ok()) return std::move(loops).status().In(k.op().type());
  return loops;
}

}  // namespace penstock
