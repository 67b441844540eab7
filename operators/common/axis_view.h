// A view of a tensor along one axis: `outer` x `inner` lines of `width` elements, `inner` apart.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const AxisView x, ViewAlong(k, x_.shape, k.Attr<int>("axis")));
//   x.ForEachLine([&](Dim begin) { ... line[begin + i * x.inner] for i < x.width ... });
#pragma once

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

struct AxisView {
  Dim outer = 1, width = 1, inner = 1;

  Dim lines() const { return outer * inner; }
  // Calls line(index of the line's first element, number of the line) for each line, in row-major order of
  // the other axes.
  template <typename Line>
  void ForEachLine(Line line) const {
    for (Dim o = 0, number = 0; o < outer; ++o) {
      for (Dim i = 0; i < inner; ++i, ++number) line(o * width * inner + i, number);
    }
  }
};

inline AxisView ViewAlong(const Shape& shape, int axis) {
  return {shape.Product(0, axis), shape[axis], shape.Product(axis + 1, shape.rank())};
}

// Returns `axis` as a non-negative number; a negative one counts from the end. kInvalidArgument: X has no
// such axis. Context is an InferContext or a KernelSetup.
template <typename Context>
Result<int> ResolveAxis(const Context& c, const Shape& x, std::int64_t axis) {
  const std::int64_t resolved = axis < 0 ? axis + x.rank() : axis;
  if (resolved >= 0 && resolved < x.rank()) return static_cast<int>(resolved);
  return c.Error("axis (", axis, ") must be in [", -x.rank(), ", ", x.rank(), "), the rank of X (", x, ")");
}

}  // namespace penstock
