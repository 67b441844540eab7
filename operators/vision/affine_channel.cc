// affine_channel: multiplies each channel by its scale and adds its bias.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[n, c, ...] = X[n, c, ...] * Scale[c] + Bias[c]

Replaces a batch normalisation with frozen statistics. The channels are the last dimension of X with
data_layout NHWC, otherwise the second.)";

struct Channels {
  Dim images = 0, channels = 0, pixels = 0, pixel_stride = 1, channel_stride = 1;

  template <typename Context>
  Status Prepare(const Context& k, const Shape& x) {
    if (x.rank() < 2) return k.Error("rank of X (", x.rank(), ", shape ", x, ") must be above 1");
    const bool last = k.template Attr<std::string>("data_layout") == "NHWC";
    images = x[0];
    channels = x[last ? x.rank() - 1 : 1];
    pixels = last ? x.Product(1, x.rank() - 1) : x.Product(2, x.rank());
    pixel_stride = last ? channels : 1;
    channel_stride = last ? 1 : pixels;
    return OkStatus();
  }
  Dim At(Dim c, Dim i) const {  // i in [0, images * pixels)
    return i / pixels * channels * pixels + c * channel_stride + i % pixels * pixel_stride;
  }
};

Status InferAffineChannel(InferContext& c) {
  Channels shape;
  PENSTOCK_RETURN_IF_ERROR(shape.Prepare(c, c.ShapeOf("X")));
  for (const char* slot : {"Scale", "Bias"}) {
    if (!Compatible(c.ShapeOf(slot), Shape{shape.channels}))
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [", shape.channels,
                     "], the channels of X");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class AffineChannelKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, bias_, out_);
    return shape_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const scale = std::as_const(k[scale_]).template Data<T>();
    const T* const bias = std::as_const(k[bias_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    for (Dim c = 0; c < shape_.channels; ++c) {
      const T factor = scale[c], added = bias[c];
      for (Dim n = 0; n < shape_.images; ++n) {
        Dim at = n * shape_.channels * shape_.pixels + c * shape_.channel_stride;
        for (Dim p = 0; p < shape_.pixels; ++p, at += shape_.pixel_stride) out[at] = x[at] * factor + added;
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Scale"> scale_;
  In<"Bias"> bias_;
  Out<"Out"> out_;
  Channels shape_;
};

template <typename Device, typename T>
class AffineChannelGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, dout_, dx_, dscale_, dbias_);
    PENSTOCK_RETURN_IF_ERROR(shape_.Prepare(k, k[x_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Scale", {shape_.channels}));
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const scale = std::as_const(k[scale_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dscale = dscale_ ? k[dscale_].template Data<T>() : nullptr;
    T* const dbias = dbias_ ? k[dbias_].template Data<T>() : nullptr;
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    const Dim count = shape_.images * shape_.pixels;
    for (Dim c = 0; c < shape_.channels; ++c) {
      const auto at = [&](Dim i) { return shape_.At(c, i); };
      if (dscale != nullptr)
        dscale[c] = SumOf<T>(count, [&](std::int64_t i) { return dout[at(i)] * x[at(i)]; });
      if (dbias != nullptr) dbias[c] = SumOf<T>(count, [&](std::int64_t i) { return dout[at(i)]; });
    }
    for (Dim c = 0; dx != nullptr && c < shape_.channels; ++c) {
      for (Dim i = 0; i < count; ++i) dx[shape_.At(c, i)] = dout[shape_.At(c, i)] * scale[c];
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Scale"> scale_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Scale@GRAD"> dscale_;
  Out<"Bias@GRAD"> dbias_;
  Channels shape_;
};

Status InferAffineChannelGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "X@GRAD"));
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    c.SetDType(slot, c.DTypeOf("Scale"));
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, c.ShapeOf("Scale")));
  }
  return OkStatus();
}

}  // namespace

void RegisterAffineChannel(OpRegistry& ops) {
  ops.Add("affine_channel")
      .Doc("Multiplies each channel by its scale and adds its bias.", kDoc)
      .Input("X", "of rank 2 or more", Floats())
      .Input("Scale", "one element per channel", SameTypeAs("X"))
      .Input("Bias", "one element per channel", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("data_layout", "AnyLayout", "the memory layout of X; AnyLayout is NCHW",
            OneOf({"AnyLayout", "NCHW", "NHWC"}))
      .InferShape(InferAffineChannel)
      .Kernel<Cpu, AffineChannelKernel, float, double>()
      .Grad({.reads = {"X", "Scale"}, .yields = {"X", "Scale", "Bias"}, .apart = {"X", "Scale", "Bias"}})
      .GradKernel<Cpu, AffineChannelGradKernel, float, double>()
      .GradDef()
      .InferShape(InferAffineChannelGrad);
}

}  // namespace penstock
