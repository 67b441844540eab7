// instance_norm_grad_grad: the second-order gradient of instance_norm.
#include "operators/nn/instance_norm_second_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "operators/common/grad_args.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each channel of each image, let n = (X - SavedMean) * SavedVariance be its normalised elements,
r = SavedVariance, and centred(v) = v - mean(v) - n * mean(v * n). Then

DDY    = Scale * r * centred(DDX) + DDScale * n + DDBias
DScale = the sum of r * DDX * centred(DY) over the elements of the channel in all images
DX     = DDScale * r * centred(DY) - Scale * r ^ 2
         * (mean(DDX * centred(DY)) * n + mean(DY * n) * centred(DDX) + mean(DDX * n) * centred(DY))

SavedMean and SavedVariance are treated as functions of X. An absent DDX, DDScale or DDBias counts as 0.)";

// Means over one channel of one image.
struct ChannelMeans {
  double a = 0, b = 0, an = 0, bn = 0, ab = 0;  // a: of DDX, b: of DY, n: of the normalised X
  // Returns mean(a * centred(b)), which equals mean(b * centred(a)).
  double Product() const { return ab - a * b - an * bn; }
};

template <typename Device, typename T>
class InstanceNormSecondOrderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    if (k[x_].shape.rank() < 2) return k.Error("rank of X (", k[x_].shape, ") must be above 1");
    channels_ = k[x_].shape[1];
    lines_ = k[x_].shape[0] * channels_;
    points_ = k[x_].shape.Product(2, k[x_].shape.rank());
    k.Bind(scale_, mean_, deviation_, dy_, ddx_, ddscale_, ddbias_, dx_, dscale_, ddy_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DY", k[x_].shape));
    if (ddx_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDX", k[x_].shape));
    for (const char* slot : {"Scale", "DDScale", "DDBias"}) {
      if (k.Input(slot)) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, {channels_}));
    }
    for (const char* slot : {"SavedMean", "SavedVariance"})
      PENSTOCK_RETURN_IF_ERROR(RequireCount(k, slot, lines_));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (dscale_) std::ranges::fill(k[dscale_].template Span<T>(), T{0});
    for (Dim line = 0; line < lines_; ++line) RunLine(k, line);
    return OkStatus();
  }

 private:
  double At(KernelRun& k, const Operand& operand, Dim i) const {
    return operand ? static_cast<double>(std::as_const(k[operand]).template Data<T>()[i]) : 0.0;
  }

  // One channel of one image.
  void RunLine(KernelRun& k, Dim line) const {
    const Dim channel = line % channels_, begin = line * points_;
    const double middle = At(k, mean_, line), r = At(k, deviation_, line), scale = At(k, scale_, channel);
    const double ddscale = At(k, ddscale_, channel), ddbias = At(k, ddbias_, channel);
    const auto normal = [&](Dim i) { return (At(k, x_, i) - middle) * r; };
    const ChannelMeans m = MeansOf(k, begin, normal);
    if (dscale_) {
      k[dscale_].template Data<T>()[channel] +=
          static_cast<T>(r * m.Product() * static_cast<double>(points_));
    }
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const ddy = ddy_ ? k[ddy_].template Data<T>() : nullptr;
    for (Dim i = begin; i < begin + points_; ++i) {
      const double n = normal(i);
      const double centred_a = At(k, ddx_, i) - m.a - n * m.an, centred_b = At(k, dy_, i) - m.b - n * m.bn;
      if (ddy != nullptr) ddy[i] = static_cast<T>(scale * r * centred_a + ddscale * n + ddbias);
      if (dx == nullptr) continue;
      const double curved = m.Product() * n + m.bn * centred_a + m.an * centred_b;
      dx[i] = static_cast<T>(ddscale * r * centred_b - scale * r * r * curved);
    }
  }

  template <typename Normal>
  ChannelMeans MeansOf(KernelRun& k, Dim begin, const Normal& normal) const {
    ChannelMeans m;
    for (Dim i = begin; i < begin + points_; ++i) {
      const double a = At(k, ddx_, i), b = At(k, dy_, i), n = normal(i);
      m.a += a;
      m.b += b;
      m.an += a * n;
      m.bn += b * n;
      m.ab += a * b;
    }
    const double size = static_cast<double>(std::max<Dim>(points_, 1));
    for (double* sum : {&m.a, &m.b, &m.an, &m.bn, &m.ab}) *sum /= size;
    return m;
  }

  In<"X"> x_;
  In<"Scale"> scale_;
  In<"SavedMean"> mean_;
  In<"SavedVariance"> deviation_;
  In<"DY"> dy_;
  In<"DDX"> ddx_;
  In<"DDScale"> ddscale_;
  In<"DDBias"> ddbias_;
  Out<"DX"> dx_;
  Out<"DScale"> dscale_;
  Out<"DDY"> ddy_;
  Dim channels_ = 0, lines_ = 0, points_ = 0;
};

Result<std::vector<Op>> MakeInstanceNormSecondOrder(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  const std::string dscale = request.grad_of(forward.InputName("Scale"));
  const std::string ddy = request.grad_of(forward.InputName("Y@GRAD"));
  if (dx.empty() && dscale.empty() && ddy.empty()) return std::vector<Op>();
  Op op("instance_norm_grad_grad");
  for (const char* slot : {"X", "Scale", "SavedMean", "SavedVariance"})
    op.AddInput(slot, forward.Input(slot));
  op.AddInput("DY", forward.Input("Y@GRAD")).AddInput("DDX", GradOfResult(request, "X@GRAD"));
  op.AddInput("DDScale", GradOfResult(request, "Scale@GRAD"))
      .AddInput("DDBias", GradOfResult(request, "Bias@GRAD"));
  op.AddOutput("DX", OneOrNone(dx)).AddOutput("DScale", OneOrNone(dscale)).AddOutput("DDY", OneOrNone(ddy));
  for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(op)};
}

}  // namespace

void AddInstanceNormSecondOrder(OpRegistry& ops, OpDef& instance_norm) {
  instance_norm.GradDef().GradMadeBy(MakeInstanceNormSecondOrder);
  ops.Add("instance_norm_grad_grad")
      .Doc("The gradient of instance_norm_grad.", kDoc)
      .Input("X", "[N, C, ...]", Floats())
      .Input("Scale", "the factor of each channel", SameTypeAs("X"))
      .Input("SavedMean", "[N * C], the means", SameTypeAs("X"))
      .Input("SavedVariance", "[N * C], 1 / sqrt(variance + epsilon)", SameTypeAs("X"))
      .Input("DY", "the gradient of Y", SameTypeAs("X"))
      .Input("DDX", "the gradient of X@GRAD", SameTypeAs("X"), Optional())
      .Input("DDScale", "the gradient of Scale@GRAD", SameTypeAs("X"), Optional())
      .Input("DDBias", "the gradient of Bias@GRAD", SameTypeAs("X"), Optional())
      .Output("DX", "the gradient of X", SameTypeAs("X"), Optional() | Apart())
      .Output("DScale", "the gradient of Scale", SameTypeAs("X"), Optional() | Apart())
      .Output("DDY", "the gradient of Y@GRAD", SameTypeAs("X"), Optional() | Apart())
      .Attr("epsilon", 1e-5f, "has no effect: SavedVariance includes it", AtLeast(0))
      .InferShape([](InferContext& c) -> Status {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "DX"));
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Scale", "DScale"));
        return c.ShareAll("X", "DDY");
      })
      .Kernel<Cpu, InstanceNormSecondOrderKernel, float, double>();
}

}  // namespace penstock
