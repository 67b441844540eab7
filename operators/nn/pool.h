// Shared by pool2d, pool3d and max pooling with indices: the geometry of their windows, and the loops over
// them.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "operators/nn/window.h"

namespace penstock {

struct PoolGeometry {
  bool channels_last = false;
  bool is_max = true;
  bool adaptive = false;
  bool counts_padding = false;
  Window window;
};

// Computes the geometry from the attributes that all of these ops have; only pool2d and pool3d have
// `padding_algorithm` and `ceil_mode`. kInvalidArgument: a wrong rank, or attributes that do not fit.
template <typename Context>
Result<PoolGeometry> StartPoolGeometry(const Context& c, const Shape& x, bool channels_last,
                                       const std::string& padding_algorithm, bool ceil_mode) {
  const int axes = SpatialAxes(c.op().type());
  if (x.rank() != axes + 2) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be ", axes + 2);
  const auto ksize = c.template Attr<std::vector<std::int32_t>>("ksize");
  if (ksize.size() != static_cast<std::size_t>(axes))
    return c.Error("ksize must have ", axes, " values, not ", ksize.size());
  PoolGeometry g;
  g.channels_last = channels_last;
  const std::vector<Dim> in = SpatialExtents(x, channels_last);
  const bool global = c.template Attr<bool>("global_pooling");
  const std::vector<Dim> kernel = global ? in : std::vector<Dim>(ksize.begin(), ksize.end());
  if (!global && std::ranges::min(kernel) < 1)
    return c.Error("ksize (", Join(kernel, ", "), ") must be at least 1");
  if (c.template Attr<bool>("adaptive")) {  // with global_pooling: one window per element, as in Fluid
    g.adaptive = true;
    g.window = Window(axes);
    for (int axis = 0; axis < axes; ++axis) {
      g.window[axis].in = in[static_cast<std::size_t>(axis)];
      g.window[axis].out = kernel[static_cast<std::size_t>(axis)];
    }
    return g;
  }
  WindowAttrs attrs = {.strides = c.template Attr<std::vector<std::int32_t>>("strides"),
                       .paddings = c.template Attr<std::vector<std::int32_t>>("paddings"),
                       .padding_algorithm = global ? "VALID" : padding_algorithm,
                       .ceil_mode = ceil_mode};
  const auto window = MakeWindow(attrs, in, kernel);
  if (!window.ok()) return c.Error(window.status().message());
  g.window = *window;
  return g;
}

// The elements of one axis under window o.
struct PoolRange {
  Dim begin = 0, end = 1;
  Dim size() const { return std::max<Dim>(end - begin, 0); }
};
using PoolRanges = std::array<PoolRange, 3>;  // of depth, height and width

inline PoolRange UnderWindow(const PoolGeometry& g, const WindowAxis& w, Dim o) {
  if (g.adaptive) return {o * w.in / w.out, ((o + 1) * w.in + w.out - 1) / w.out};
  const Dim begin = o * w.stride - w.pad_begin;
  return {std::max<Dim>(begin, 0), std::min(begin + w.kernel, w.in)};
}

// Calls visit({depth, row, column} of the window, ranges) for each window of `g`.
template <typename Visit>
void EachPoolWindow(const PoolGeometry& g, Visit&& visit) {
  const std::array<WindowAxis, 3>& w = g.window.all();
  PoolRanges ranges;
  for (Dim z = 0; z < w[0].out; ++z) {
    if (g.window.axes() == 3) ranges[0] = UnderWindow(g, w[0], z);
    for (Dim y = 0; y < w[1].out; ++y) {
      ranges[1] = UnderWindow(g, w[1], y);
      for (Dim x = 0; x < w[2].out; ++x) {
        ranges[2] = UnderWindow(g, w[2], x);
        visit(std::array<Dim, 3>{z, y, x}, ranges);
      }
    }
  }
}

// Calls visit(index in X) for each element of a plane under a window, until it returns false.
template <typename Visit>
void EachUnderWindow(const ImageShape& x, Dim n, Dim c, const PoolRanges& r, Visit&& visit) {
  for (Dim z = r[0].begin; z < r[0].end; ++z) {
    for (Dim i = r[1].begin; i < r[1].end; ++i) {
      for (Dim j = r[2].begin; j < r[2].end; ++j) {
        if (!visit(x.At(n, c, z, i, j))) return;
      }
    }
  }
}

}  // namespace penstock
