// im2sequence: the windows of images as sequences.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sequence n of Out holds the windows of image n, row by row. A row of Out is a window: its channels, each row
by row.

Along an axis there are floor((size + paddings - kernel) / stride) + 1 windows. Pixels outside the image are
zero. With Y, the size of image n is Y[n] = (height, width) divided by out_stride and rounded up; pixels
beyond X are zero. A single image always has the size of X, as in Fluid. The gradient assumes that all images
have the size of X, because Fluid's gradient op has no slot Y.)";

// Windows along one axis.
struct Axis {
  Dim extent = 0, kernel = 1, stride = 1, before = 0, after = 0;
  // Returns the number of windows of an image of this size; 0 or less if not even one fits.
  Dim Count(Dim image_extent) const {
    const Dim room = image_extent + before + after - kernel;
    return room < 0 ? 0 : 1 + room / stride;
  }
};

struct WindowSetup {
  Axis height, width;
  Dim images = 0, channels = 0;
  Dim out_stride[2] = {1, 1};
  Dim row_width() const { return channels * height.kernel * width.kernel; }
};

template <typename Context>
Result<WindowSetup> MakeWindowSetup(const Context& c, const Shape& x) {
  const auto kernels = c.template Attr<std::vector<std::int32_t>>("kernels");
  const auto strides = c.template Attr<std::vector<std::int32_t>>("strides");
  const auto paddings = c.template Attr<std::vector<std::int32_t>>("paddings");
  const auto out_stride = c.template Attr<std::vector<std::int32_t>>("out_stride");
  if (kernels.size() != 2 || strides.size() != 2 || paddings.size() != 4 || out_stride.size() != 2) {
    return c.Error("kernels, strides and out_stride must have 2 values, not ", kernels.size(), ", ",
                   strides.size(), " and ", out_stride.size(), ", paddings 4, not ", paddings.size());
  }
  if (Dim{kernels[0]} * kernels[1] > Dim{1} << 31)
    return c.Error("a window of ", kernels[0], " x ", kernels[1], " elements is too large");
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  for (const std::int32_t padding : paddings) {
    if (padding > 1 << 20) return c.Error("a padding of ", padding, " elements is too large");
  }
  WindowSetup w;
  w.images = x[0];
  w.channels = x[1];
  w.height = {x[2], kernels[0], strides[0], paddings[0], paddings[2]};
  w.width = {x[3], kernels[1], strides[1], paddings[1], paddings[3]};
  w.out_stride[0] = out_stride[0];
  w.out_stride[1] = out_stride[1];
  return w;
}

Status InferIm2Sequence(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const WindowSetup w, MakeWindowSetup(c, x));
  Dim rows = kUnknownDim;
  if (x[2] != kUnknownDim && x[3] != kUnknownDim && !c.HasInput("Y")) {
    const Dim windows = w.height.Count(x[2]) * w.width.Count(x[3]);
    if (windows == 0) return c.Error("a window does not fit into an image of X (", x, ")");
    if (x[0] != kUnknownDim) rows = x[0] * windows;
  }
  c.SetLodLevel("Out", 1);
  return c.SetShape("Out", {rows, x[1] == kUnknownDim ? kUnknownDim : w.row_width()});
}

// Calls visit(element of Out's row, element of the image) for each element of a window that lies inside the
// image.
template <typename Visit>
void EachElement(const WindowSetup& w, Dim y, Dim x, Visit&& visit) {
  const Dim top = y * w.height.stride - w.height.before, left = x * w.width.stride - w.width.before;
  Dim at = 0;
  for (Dim c = 0; c < w.channels; ++c) {
    for (Dim i = top; i < top + w.height.kernel; ++i) {
      for (Dim j = left; j < left + w.width.kernel; ++j, ++at) {
        if (i < 0 || j < 0 || i >= w.height.extent || j >= w.width.extent) continue;
        visit(at, (c * w.height.extent + i) * w.width.extent + j);
      }
    }
  }
}

template <typename Device, typename T>
class Im2SequenceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    what_ = k.op().type();
    PENSTOCK_ASSIGN_OR_RETURN(w_, MakeWindowSetup(k, k[x_].shape));
    if (w_.images > 1) k.Bind(sizes_);
    if (sizes_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y", {w_.images, 2}));
    return out_.Prepare(k, "Out", k[x_].dtype, {0, w_.row_width()});
  }

  Status Run(KernelRun& k) override {
    lod_.Start(1);
    Dim rows = 0;
    for (Dim n = 0; n < w_.images; ++n) {
      const Dim windows = CountOf(k, n, 0) * CountOf(k, n, 1);
      if (windows == 0) {
        return InvalidArgument("E-op-value", what_, ": a window does not fit into image ", n, " of ",
                               Extent(k, n, 0), " x ", Extent(k, n, 1), " elements");
      }
      if (windows > kElementsMax / std::max(w_.row_width(), Dim{1}) - rows) {
        return InvalidArgument("E-op-value", what_, ": image ", n, " of ", Extent(k, n, 0), " x ",
                               Extent(k, n, 1), " elements has too many windows");
      }
      lod_.Add(0, windows);
      rows += windows;
    }
    Tensor& out = out_.Make(k, rows);
    lod_.Set(out);
    std::ranges::fill(out.Span<T>(), T{0});
    const T* image = std::as_const(k[x_]).template Data<T>();
    T* row = out.Data<T>();
    for (Dim n = 0; n < w_.images; ++n, image += w_.channels * w_.height.extent * w_.width.extent) {
      const Dim high = CountOf(k, n, 0), wide = CountOf(k, n, 1);
      for (Dim window = 0; window < high * wide; ++window, row += w_.row_width()) {
        EachElement(w_, window / wide, window % wide, [&](Dim at, Dim from) { row[at] = image[from]; });
      }
    }
    return OkStatus();
  }

 private:
  static constexpr Dim kElementsMax = Dim{1} << 48;

  // Returns the size of an image along an axis (0: height), its own if Y gives it. An invalid size counts as
  // 0.
  Dim Extent(KernelRun& k, Dim image, Dim axis) const {
    const Axis& whole = axis == 0 ? w_.height : w_.width;
    if (!sizes_) return whole.extent;
    const T size = std::as_const(k[sizes_]).template Data<T>()[image * 2 + axis];
    if (!(size >= T{0} && size <= static_cast<T>(1 << 30))) return -whole.before - whole.after;
    const Dim pixels = static_cast<Dim>(size), stride = w_.out_stride[axis];
    return (pixels + stride - 1) / stride;
  }
  Dim CountOf(KernelRun& k, Dim image, Dim axis) const {
    return (axis == 0 ? w_.height : w_.width).Count(Extent(k, image, axis));
  }

  In<"X"> x_;
  In<"Y"> sizes_;
  RowsOutput out_;
  MadeLod lod_;
  WindowSetup w_;
  std::string what_;
};

// Adds Out@GRAD to the windows' positions. With images of different sizes, its sequences would have to give
// the numbers of windows, and Fluid's op has no slot Y; therefore all images have the size of X.
template <typename Device, typename T>
class Im2SequenceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    PENSTOCK_ASSIGN_OR_RETURN(w_, MakeWindowSetup(k, k.Input("X").shape));
    high_ = w_.height.Count(w_.height.extent);
    wide_ = w_.width.Count(w_.width.extent);
    return RequireShape(k, "Out@GRAD", {w_.images * high_ * wide_, w_.row_width()});
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    T* image = k[dx_].template Data<T>();
    const T* row = std::as_const(k[dout_]).template Data<T>();
    for (Dim n = 0; n < w_.images; ++n, image += w_.channels * w_.height.extent * w_.width.extent) {
      for (Dim window = 0; window < high_ * wide_; ++window, row += w_.row_width()) {
        EachElement(w_, window / wide_, window % wide_, [&](Dim at, Dim to) { image[to] += row[at]; });
      }
    }
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  WindowSetup w_;
  Dim high_ = 0, wide_ = 0;
};

}  // namespace

void RegisterIm2Sequence(OpRegistry& ops) {
  ops.Add("im2sequence")
      .Doc("Copies the windows of images to the rows of sequences.", kDoc)
      .Input("X", "the images, [images, channels, height, width]", Floats())
      .Input("Y", "[images, 2], the height and width of each image", SameTypeAs("X"), Optional())
      .Output("Out", "one row per window", SameTypeAs("X"))
      .RequiredAttr("kernels", AttrKind::kInts, "the height and width of a window", AtLeast(1))
      .Attr("strides", std::vector<std::int32_t>{1, 1},
            "the distance between adjacent windows: height, width", AtLeast(1))
      .Attr("paddings", std::vector<std::int32_t>{0, 0, 0, 0}, "the paddings: top, left, bottom, right",
            AtLeast(0))
      .Attr("out_stride", std::vector<std::int32_t>{1, 1}, "the divisors of the sizes in Y", AtLeast(1))
      .InferShape(InferIm2Sequence)
      .Kernel<Cpu, Im2SequenceKernel, float, double>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, Im2SequenceGradKernel, float, double>();
}

}  // namespace penstock
