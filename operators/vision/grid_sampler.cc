// grid_sampler: samples images at positions between pixels.
#include <algorithm>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/bilinear.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output[n, c, i, j] = X[n, c] at position Grid[n, i, j] = (x, y)

-1 and 1 are the first and the last pixel along the width (x) and the height (y). Between pixels, X is
interpolated bilinearly; pixels outside X are zero. X and Grid have gradients.)";

Status InferGridSampler(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &grid = c.ShapeOf("Grid");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  if (grid.rank() != 4 || !Compatible(grid[3], 2) || !Compatible(grid[0], x[0]))
    return c.Error("shape of Grid (", grid, ") must be [", x[0], ", height, width, 2]");
  c.ShareLod("X", "Output");
  return c.SetShape("Output", {x[0], x[1], grid[1], grid[2]});
}

struct GridSetup {
  Dim images = 0, channels = 0, height = 0, width = 0, places = 0;

  Status Prepare(const KernelSetup& k) {
    const Shape &x = k.Input("X").shape, &grid = k.Input("Grid").shape;
    if (x.rank() != 4) return k.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
    if (grid.rank() != 4 || grid[3] != 2 || grid[0] != x[0])
      return k.Error("shape of Grid (", grid, ") must be [", x[0], ", height, width, 2]");
    images = x[0];
    channels = x[1];
    height = x[2];
    width = x[3];
    places = grid[1] * grid[2];
    return OkStatus();
  }
  // Converts the element (x, y) of Grid to a point in pixels.
  template <typename T>
  BilinearPoint<T> At(const T* grid) const {
    const T half{0.5};
    return {(grid[1] + 1) * half * static_cast<T>(height - 1),
            (grid[0] + 1) * half * static_cast<T>(width - 1), height, width};
  }
};

template <typename Device, typename T>
class GridSamplerKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, grid_, out_);
    return setup_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const T* x = std::as_const(k[x_]).template Data<T>();
    const T* grid = std::as_const(k[grid_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    const Dim plane = setup_.height * setup_.width;
    for (Dim n = 0; n < setup_.images; ++n) {
      for (Dim p = 0; p < setup_.places; ++p, grid += 2) {
        const BilinearPoint<T> point = setup_.At(grid);
        const T bad = grid[0] + grid[1];
        for (Dim c = 0; c < setup_.channels; ++c)
          out[c * setup_.places + p] = IsNan(bad) ? bad : point.Of(x + c * plane);
      }
      x += setup_.channels * plane;
      out += setup_.channels * setup_.places;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Grid"> grid_;
  Out<"Output"> out_;
  GridSetup setup_;
};

template <typename Device, typename T>
class GridSamplerGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, grid_, dout_, dx_, dgrid_);
    PENSTOCK_RETURN_IF_ERROR(setup_.Prepare(k));
    return RequireShape(k, "Output@GRAD",
                        {setup_.images, setup_.channels, k[grid_].shape[1], k[grid_].shape[2]});
  }
  Status Run(KernelRun& k) override {
    const T* x = std::as_const(k[x_]).template Data<T>();
    const T* grid = std::as_const(k[grid_]).template Data<T>();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    T* dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* dgrid = dgrid_ ? k[dgrid_].template Data<T>() : nullptr;
    if (dx != nullptr) std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const Dim plane = setup_.height * setup_.width, image = setup_.channels * plane;
    const T half{0.5};
    for (Dim n = 0; n < setup_.images; ++n) {
      for (Dim p = 0; p < setup_.places; ++p, grid += 2) {
        const BilinearPoint<T> point = setup_.At(grid);
        T dy_place{}, dx_place{};
        for (Dim c = 0; c < setup_.channels; ++c) {
          const T d = dout[c * setup_.places + p];
          if (dx != nullptr) point.Add(d, dx + c * plane);
          point.AddSlopes(x + c * plane, d, dy_place, dx_place);
        }
        if (dgrid == nullptr) continue;
        const T bad = grid[0] + grid[1];
        dgrid[0] = IsNan(bad) ? bad : dx_place * half * static_cast<T>(setup_.width - 1);
        dgrid[1] = IsNan(bad) ? bad : dy_place * half * static_cast<T>(setup_.height - 1);
        dgrid += 2;
      }
      x += image;
      if (dx != nullptr) dx += image;
      dout += setup_.channels * setup_.places;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Grid"> grid_;
  In<"Output@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Grid@GRAD"> dgrid_;
  GridSetup setup_;
};

}  // namespace

void RegisterGridSampler(OpRegistry& ops) {
  ops.Add("grid_sampler")
      .Doc("Samples images at positions between pixels.", kDoc)
      .Input("X", "images, [images, channels, height, width]", Floats())
      .Input("Grid", "[images, height, width, 2]: x and y of each sample", SameTypeAs("X"))
      .Output("Output", "one pixel per sample", SameTypeAs("X"), Apart())
      .Attr("use_cudnn", true, kNoEffect)
      .Nan(
          "samples at a position that is NaN, and the gradient of that position, are NaN; they add nothing "
          "to the gradient of X.")
      .InferShape(InferGridSampler)
      .Kernel<Cpu, GridSamplerKernel, float, double>()
      .Grad({.reads = {"X", "Grid"}, .yields = {"X", "Grid"}, .apart = {"X", "Grid"}})
      .GradKernel<Cpu, GridSamplerGradKernel, float, double>();
}

}  // namespace penstock
