// lrn: local response normalisation across channels.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
MidOut = k + alpha * (sum of X * X over the n channels centred on the element's channel)
Out    = X * MidOut ^ -beta

Krizhevsky, Sutskever, Hinton: "ImageNet classification with deep convolutional neural networks", NIPS
2012.)";

Status InferLrn(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "MidOut"));
  return c.ShareAll("X", "Out");
}

AttrCheck Odd() {
  return {[](const Attr& given) -> std::optional<std::string> {
    const std::int32_t n = std::get<std::int32_t>(given);
    if (n > 0 && n % 2 == 1) return std::nullopt;
    return "odd and at least 1";
  }};
}

// Images as channels of pixels, and the neighbours of each channel.
struct Neighbours {
  Status Prepare(const KernelSetup& k, const Shape& x) {
    if (x.rank() != 4) return k.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
    const bool channels_last = k.Attr<std::string>("data_format") == "NHWC";
    images = x[0];
    channels = x[channels_last ? 3 : 1];
    pixels = x.Count() / std::max<Dim>(images * channels, 1);
    pixel_stride = channels_last ? channels : 1;
    channel_stride = channels_last ? 1 : pixels;
    reach = (k.Attr<int>("n") - 1) / 2;
    k_ = static_cast<double>(k.Attr<float>("k"));
    alpha = static_cast<double>(k.Attr<float>("alpha"));
    beta = static_cast<double>(k.Attr<float>("beta"));
    return OkStatus();
  }
  // Calls visit(element) for each element.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (Dim n = 0; n < images; ++n) {
      for (Dim c = 0; c < channels; ++c) {
        for (Dim p = 0; p < pixels; ++p) {
          visit(n * channels * pixels + c * channel_stride + p * pixel_stride, c);
        }
      }
    }
  }
  // Returns the sum of term(element) over the neighbours of channel c at point `at`, itself included.
  template <typename Term>
  double Around(Dim at, Dim c, Term term) const {
    double sum = 0;
    const Dim first = std::max<Dim>(c - reach, 0), last = std::min(c + reach, channels - 1);
    for (Dim other = first; other <= last; ++other) sum += term(at + (other - c) * channel_stride);
    return sum;
  }

  Dim images = 0, channels = 0, pixels = 0, pixel_stride = 1, channel_stride = 1, reach = 0;
  double k_ = 0, alpha = 0, beta = 0;
};

template <typename Device, typename T>
class LrnKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, mid_, out_);
    return near_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const mid = k[mid_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    near_.ForEach([&](Dim at, Dim channel) {
      const double squares = near_.Around(
          at, channel, [x](Dim i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
      const double scale = near_.k_ + near_.alpha * squares;
      mid[at] = static_cast<T>(scale);
      out[at] = static_cast<T>(static_cast<double>(x[at]) * std::pow(scale, -near_.beta));
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"MidOut"> mid_;
  Out<"Out"> out_;
  Neighbours near_;
};

// dX = dOut * MidOut ^ -beta - 2 alpha beta X * (sum over the same neighbours of dOut * Out / MidOut)
template <typename Device, typename T>
class LrnGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, mid_, dout_, dx_);
    for (const char* slot : {"Out", "MidOut", "Out@GRAD"})
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, k[x_].shape));
    return near_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const out = k[out_].template Data<T>();
    const T* const mid = k[mid_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    near_.ForEach([&](Dim at, Dim channel) {
      const double through = near_.Around(at, channel, [&](Dim i) {
        return static_cast<double>(dout[i]) * static_cast<double>(out[i]) / static_cast<double>(mid[i]);
      });
      const double own = static_cast<double>(dout[at]) * std::pow(static_cast<double>(mid[at]), -near_.beta);
      dx[at] = static_cast<T>(own - 2 * near_.alpha * near_.beta * static_cast<double>(x[at]) * through);
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out"> out_;
  In<"MidOut"> mid_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Neighbours near_;
};

}  // namespace

void RegisterLrn(OpRegistry& ops) {
  ops.Add("lrn")
      .Doc("Local response normalisation across channels.", kDoc)
      .Input("X", "images, rank 4", Floats())
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .Output("MidOut", "the scale of X before the power", SameTypeAs("X"), Apart())
      .Attr("n", 5, "the number of channels in the sum", Odd())
      .Attr("k", 2.0f, "keeps the scale away from 0")
      .Attr("alpha", 1e-4f, "the factor of the squares")
      .Attr("beta", 0.75f, "the exponent")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("data_format", "AnyLayout", "the memory layout of X; AnyLayout is NCHW",
            OneOf({"AnyLayout", "NCHW", "NHWC"}))
      .Attr("is_test", false, kNoEffect)
      .InferShape(InferLrn)
      .Kernel<Cpu, LrnKernel, float, double>()
      .Grad({.reads = {"X"},
             .reads_outputs = {"Out", "MidOut"},
             .yields = {"X"},
             .of = {"Out"},
             .apart = {"X"}})
      .GradKernel<Cpu, LrnGradKernel, float, double>();
}

}  // namespace penstock
