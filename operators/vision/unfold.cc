// unfold: the windows of images as columns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Column l of Y[n] is window l of image n, channel by channel and row by row within a channel. Windows are
numbered row by row. Pixels outside the image are zero. Along an axis there are
floor((size + paddings - dilation * (kernel - 1) - 1) / stride) + 1 windows.)";

struct UnfoldAxis {
  Dim extent = 0, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  Dim windows() const {
    if (extent == kUnknownDim) return kUnknownDim;
    const Dim room = extent + before + after - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

struct UnfoldSetup {
  UnfoldAxis height, width;
  Dim images = 0, channels = 0;
  Dim rows() const { return channels * height.kernel * width.kernel; }

  template <typename Context>
  Status Prepare(const Context& c, const Shape& x) {
    using Ints = std::vector<std::int32_t>;
    const auto kernels = c.template Attr<Ints>("kernel_sizes"), strides = c.template Attr<Ints>("strides");
    const auto paddings = c.template Attr<Ints>("paddings"), dilations = c.template Attr<Ints>("dilations");
    if (kernels.size() != 2 || strides.size() != 2 || dilations.size() != 2 || paddings.size() != 4) {
      return c.Error("kernel_sizes, strides and dilations must have 2 values, not ", kernels.size(), ", ",
                     strides.size(), " and ", dilations.size(), ", paddings 4, not ", paddings.size());
    }
    for (const Ints* list : {&kernels, &strides, &paddings, &dilations}) {
      if (std::ranges::max(*list) > 1 << 15)
        return c.Error("an attribute holds ", std::ranges::max(*list), "; 32768 is the most");
    }
    if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
    images = x[0];
    channels = x[1];
    height = {x[2], kernels[0], strides[0], dilations[0], paddings[0], paddings[2]};
    width = {x[3], kernels[1], strides[1], dilations[1], paddings[1], paddings[3]};
    if (height.windows() == 0 || width.windows() == 0)
      return c.Error("a window of ", kernels[0], " x ", kernels[1], " does not fit into an image of X (", x,
                     ")");
    return OkStatus();
  }

  // Calls visit(element of Y, element of X) for each pair within the images.
  template <typename Visit>
  void ForEach(Visit visit) const {
    const Dim high = height.windows(), wide = width.windows();
    Dim row = 0;
    for (Dim plane = 0; plane < images * channels; ++plane) {
      for (Dim i = 0; i < height.kernel; ++i) {
        for (Dim j = 0; j < width.kernel; ++j, row += high * wide) {
          for (Dim window = 0; window < high * wide; ++window) {
            const Dim y = window / wide * height.stride - height.before + i * height.dilation;
            const Dim x = window % wide * width.stride - width.before + j * width.dilation;
            if (y < 0 || x < 0 || y >= height.extent || x >= width.extent) continue;
            visit(row + window, (plane * height.extent + y) * width.extent + x);
          }
        }
      }
    }
  }
};

Status InferUnfold(InferContext& c) {
  UnfoldSetup s;
  PENSTOCK_RETURN_IF_ERROR(s.Prepare(c, c.ShapeOf("X")));
  const Dim high = s.height.windows(), wide = s.width.windows();
  const bool known = high != kUnknownDim && wide != kUnknownDim;
  return c.SetShape(
      "Y", {s.images, s.channels == kUnknownDim ? kUnknownDim : s.rows(), known ? high * wide : kUnknownDim});
}

template <typename Device, typename T>
class UnfoldKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_);
    return setup_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* const y = k[y_].template Data<T>();
    std::ranges::fill(k[y_].template Span<T>(), T{0});
    setup_.ForEach([&](Dim to, Dim from) { y[to] = x[from]; });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Y"> y_;
  UnfoldSetup setup_;
};

template <typename Device, typename T>
class UnfoldGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dy_, dx_);
    PENSTOCK_RETURN_IF_ERROR(setup_.Prepare(k, k.Input("X").shape));
    return RequireShape(k, "Y@GRAD",
                        {setup_.images, setup_.rows(), setup_.height.windows() * setup_.width.windows()});
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dy = std::as_const(k[dy_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    setup_.ForEach([&](Dim from, Dim to) { dx[to] += dy[from]; });
    return OkStatus();
  }

 private:
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  UnfoldSetup setup_;
};

}  // namespace

void RegisterUnfold(OpRegistry& ops) {
  ops.Add("unfold")
      .Doc("Copies the windows of images to columns.", kDoc)
      .Input("X", "images, [images, channels, height, width]", Floats())
      .Output("Y", "[images, channels * window, windows]", SameTypeAs("X"), Apart())
      .RequiredAttr("kernel_sizes", AttrKind::kInts, "the height and width of a window", AtLeast(1))
      .RequiredAttr("strides", AttrKind::kInts, "the distance between adjacent windows: height, width",
                    AtLeast(1))
      .RequiredAttr("paddings", AttrKind::kInts, "zeros around X: top, left, bottom, right", AtLeast(0))
      .RequiredAttr("dilations", AttrKind::kInts, "the distance between adjacent elements of a window",
                    AtLeast(1))
      .InferShape(InferUnfold)
      .Kernel<Cpu, UnfoldKernel, float, double>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, UnfoldGradKernel, float, double>();
}

}  // namespace penstock
