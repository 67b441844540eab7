// max_pool2d_with_index and max_pool3d_with_index: the largest element of each window, and its index.
#include <algorithm>
#include <limits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/nn/pool.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is that of pool2d or pool3d with pooling_type max. Mask holds the index of each maximum within its plane
of X (one channel of one image, row-major); of equal maxima it is the first, which receives the gradient.)";

Status InferPoolWithIndex(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const PoolGeometry g, StartPoolGeometry(c, x, false, "EXPLICIT", false));
  const Shape out = ImagesOf(x[0], x[1], OutsOf(g.window), false);
  c.ShareLod("X", "Out");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Mask", out));
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class PoolWithIndexKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, mask_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Mask"));
    PENSTOCK_ASSIGN_OR_RETURN(g_, StartPoolGeometry(k, k[x_].shape, false, "EXPLICIT", false));
    shape_ = MakeImageShape(k[x_].shape, false);
    shape_.images *= shape_.channels;  // planes, one after another
    if (shape_.points() <= std::numeric_limits<std::int32_t>::max()) return OkStatus();
    return k.Error("a plane of X (", k[x_].shape, ") has more elements than Mask can index");
  }
  Status Run(KernelRun& k) override {
    const T* x = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    std::int32_t* mask = k[mask_].template Data<std::int32_t>();
    for (Dim plane = 0; plane < shape_.images; ++plane, x += shape_.points()) {
      EachPoolWindow(g_, [&](const std::array<Dim, 3>&, const PoolRanges& ranges) {
        Dim largest = -1;
        EachUnderWindow(shape_, 0, 0, ranges, [&](Dim at) {
          if (largest < 0 || x[at] > x[largest] || IsNan(x[at])) largest = at;
          return !IsNan(x[at]);
        });
        *out++ = largest < 0 ? std::numeric_limits<T>::lowest() : x[largest];
        *mask++ = static_cast<std::int32_t>(largest);
      });
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Out<"Mask"> mask_;
  PoolGeometry g_;
  ImageShape shape_;
};

template <typename Device, typename T>
class PoolWithIndexGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(mask_, dout_, dx_);
    const Shape& x = k.Input("X").shape;
    PENSTOCK_ASSIGN_OR_RETURN(const PoolGeometry g, StartPoolGeometry(k, x, false, "EXPLICIT", false));
    const Shape out = ImagesOf(x[0], x[1], OutsOf(g.window), false);
    planes_ = x[0] * x[1];
    points_ = x.Product(2, x.rank());
    windows_ = out.Product(2, out.rank());
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Mask", out));
    return RequireShape(k, "Out@GRAD", out);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const std::int32_t* mask = std::as_const(k[mask_]).template Data<std::int32_t>();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    T* dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    for (Dim plane = 0; plane < planes_; ++plane, dx += points_) {
      for (Dim window = 0; window < windows_; ++window, ++mask, ++dout) {
        if (*mask >= points_)
          return InvalidArgument("E-op-index", "max pooling with indices: Mask holds ", *mask,
                                 "; a plane of X has ", points_, " elements");
        if (*mask >= 0) dx[*mask] += *dout;
      }
    }
    return OkStatus();
  }

 private:
  In<"Mask"> mask_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Dim planes_ = 0, points_ = 0, windows_ = 0;
};

void AddPoolWithIndex(OpRegistry& ops, const char* type, std::size_t axes) {
  ops.Add(type)
      .Doc("The largest element of each window and its index.", kDoc)
      .Input("X", "[images, channels, spatial dimensions]", Floats())
      .Output("Out", "one element per window", SameTypeAs("X"), Apart())
      .Output("Mask", "the index of the element in its plane of X", Only(DType::kInt32))
      .RequiredAttr("ksize", AttrKind::kInts,
                    "the size of the window; if adaptive, the number of windows along each axis")
      .Attr("global_pooling", false,
            "whether one window covers the image; ksize and paddings are then ignored")
      .Attr("adaptive", false, "whether ksize is the number of windows")
      .Attr("strides", std::vector<std::int32_t>(axes, 1),
            "the distance between adjacent windows along each axis")
      .Attr("paddings", std::vector<std::int32_t>(axes, 0), "the padding of X along each axis")
      .Nan("the largest element of a window with a NaN is the first NaN; the gradient goes there.")
      .InferShape(InferPoolWithIndex)
      .KernelTypeFrom("X")
      .Kernel<Cpu, PoolWithIndexKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Mask"}, .yields = {"X"}, .of = {"Out"}, .apart = {"X"}})
      .GradKernel<Cpu, PoolWithIndexGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace

void RegisterMaxPoolWithIndex(OpRegistry& ops) {
  AddPoolWithIndex(ops, "max_pool2d_with_index", 2);
  AddPoolWithIndex(ops, "max_pool3d_with_index", 3);
}

}  // namespace penstock
