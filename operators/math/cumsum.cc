// cumsum: cumulative sums along one axis.
#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = X[0] + ... + X[i] along dimension `axis` (-1: the last). With exclusive, X[i] itself is not
included; with reverse, the sum begins at the other end. The gradient is the cumsum of Out@GRAD in the
other direction.)";

Status InferCumsum(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, c.ShapeOf("X"), c.Attr<int>("axis")).status());
  return c.ShareAll("X", "Out");
}

// Sums of f32 are computed in double precision.
template <typename Device, typename T>
class CumsumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    exclusive_ = k.Attr<bool>("exclusive");
    reverse_ = k.Attr<bool>("reverse");
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim) {
      Sum sum = 0;
      for (Dim i = 0; i < view_.width; ++i) {
        const Dim at = begin + (reverse_ ? view_.width - 1 - i : i) * view_.inner;
        const auto value = static_cast<Sum>(x[at]);
        out[at] = static_cast<T>(exclusive_ ? sum : sum + value);
        sum += value;
      }
    });
    return OkStatus();
  }

 private:
  // Integers wrap around instead of overflowing.
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  In<"X"> x_;
  Out<"Out"> out_;
  bool exclusive_ = false, reverse_ = false;
  AxisView view_;
};

Result<std::vector<Op>> MakeCumsumGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.Input("X").front());
  if (dx.empty()) return std::vector<Op>{};
  Op grad("cumsum");
  grad.AddInput("X", {request.grad_of(forward.Output("Out").front())}).AddOutput("Out", {dx});
  grad.Set("axis", forward.GetOr<std::int32_t>("axis", -1));
  grad.Set("reverse", !forward.GetOr<bool>("reverse", false));
  grad.Set("exclusive", forward.GetOr<bool>("exclusive", false));
  return std::vector<Op>{grad};
}

}  // namespace

void RegisterCumsum(OpRegistry& ops) {
  ops.Add("cumsum")
      .Doc("Cumulative sums along one axis.", kDoc)
      .Input("X", "of rank 1 or more", Numbers())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("axis", -1, "the axis along which to sum")
      .Attr("exclusive", false, "whether to exclude the element itself")
      .Attr("reverse", false, "whether to sum from the end")
      .InferShape(InferCumsum)
      .Kernel<Cpu, CumsumKernel, float, double, std::int32_t, std::int64_t>()
      .GradMadeBy(MakeCumsumGrad);
}

}  // namespace penstock
