// unpool: writes the elements of X back to the positions that max_pool2d_with_index recorded.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X and Indices are [images, channels, height, width]; an index is a position in the plane of Out of the same
image and channel. Out[n, c] is X[n, c, y, x] at Indices[n, c, y, x] and 0 elsewhere. Its height and width are
(size of X - 1) * strides - 2 * paddings + ksize. If several elements have the same position, the last one is
written, and all of them receive its gradient.

Zeiler, Taylor, Fergus: "Adaptive deconvolutional networks for mid and high level feature learning",
ICCV 2011.)";

Status InferUnpool(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  if (!Compatible(c.ShapeOf("Indices"), x))
    return c.Error("Indices (", c.ShapeOf("Indices"), ") must have the shape of X (", x, ")");
  const auto ksize = c.Attr<std::vector<std::int32_t>>("ksize");
  const auto strides = c.Attr<std::vector<std::int32_t>>("strides");
  const auto paddings = c.Attr<std::vector<std::int32_t>>("paddings");
  if (ksize.size() != 2 || strides.size() != 2 || paddings.size() != 2)
    return c.Error("ksize, strides and paddings must have 2 values each, not ", ksize.size(), ", ",
                   strides.size(), " and ", paddings.size());
  if (c.Attr<std::string>("unpooling_type") != "max")
    return c.Error("unpooling_type is '", c.Attr<std::string>("unpooling_type"), "'; it must be max");
  Shape out = x;
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (x[axis + 2] == kUnknownDim) continue;
    const Dim extent = (x[axis + 2] - 1) * strides[a] - 2 * Dim{paddings[a]} + ksize[a];
    if (extent < 0) return c.Error("extent ", axis + 2, " of Out would be ", extent);
    out.Set(axis + 2, extent);
  }
  return c.SetShape("Out", out);
}

// The geometry of the planes of X and Out.
struct Planes {
  Dim count = 0, from = 0, to = 0;

  // Calls visit(element of X, its position in Out) for each element.
  template <typename Visit>
  Status ForEach(const std::int32_t* indices, Visit visit) const {
    for (Dim plane = 0; plane < count; ++plane) {
      for (Dim i = plane * from; i < (plane + 1) * from; ++i) {
        if (indices[i] < 0 || indices[i] >= to) {
          return InvalidArgument("E-op-index", "unpool: index ", indices[i], " of element ", i,
                                 " must be in [0, ", to, ")");
        }
        visit(i, plane * to + indices[i]);
      }
    }
    return OkStatus();
  }
};

Planes PlanesOf(const Shape& x, const Shape& out) { return {x[0] * x[1], x[2] * x[3], out[2] * out[3]}; }

template <typename Device, typename T>
class UnpoolKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, indices_, out_);
    planes_ = PlanesOf(k[x_].shape, k[out_].shape);
    return RequireShape(k, "Indices", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    return planes_.ForEach(k[indices_].template Data<std::int32_t>(), [=](Dim i, Dim at) { out[at] = x[i]; });
  }

 private:
  In<"X"> x_;
  In<"Indices"> indices_;
  Out<"Out"> out_;
  Planes planes_;
};

template <typename Device, typename T>
class UnpoolGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, indices_, dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Indices", k[x_].shape));
    if (k[x_].shape.rank() != 4 || k[dout_].shape.rank() != 4 ||
        k[dout_].shape.First(2) != k[x_].shape.First(2))
      return k.Error("Out@GRAD (", k[dout_].shape, ") must have the images and channels of X (", k[x_].shape,
                     ")");
    planes_ = PlanesOf(k[x_].shape, k[dout_].shape);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    return planes_.ForEach(k[indices_].template Data<std::int32_t>(),
                           [=](Dim i, Dim at) { dx[i] = dout[at]; });
  }

 private:
  In<"X"> x_;
  In<"Indices"> indices_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Planes planes_;
};

}  // namespace

void RegisterUnpool(OpRegistry& ops) {
  ops.Add("unpool")
      .Doc("Writes pooled elements back to their original positions.", kDoc)
      .Input("X", "[images, channels, height, width]", Floats())
      .Input("Indices", "shaped like X", Only(DType::kInt32))
      .Output("Out", "[images, channels, larger height, larger width]", SameTypeAs("X"), Apart())
      .RequiredAttr("ksize", AttrKind::kInts, "height and width of the pooling window")
      .Attr("strides", std::vector<std::int32_t>{1, 1}, "the distance between adjacent windows", AtLeast(1))
      .Attr("paddings", std::vector<std::int32_t>{0, 0}, "the paddings of the pooling", AtLeast(0))
      .RequiredAttr("unpooling_type", AttrKind::kString, "max")
      .InferShape(InferUnpool)
      .KernelTypeFrom("X")
      .Kernel<Cpu, UnpoolKernel, float, double>()
      .Grad({.reads = {"X", "Indices"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, UnpoolGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace penstock
