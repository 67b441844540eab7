// p_norm: the p-norm of vectors along one axis.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = (sum of |X|^porder along dimension `axis`)^(1 / porder). The dimension is removed, or becomes 1 with
keepdim.

The gradient is Out@GRAD * sign(X) * |X|^(porder - 1) / (Out^(porder - 1) + epsilon).)";

Status InferPNorm(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, x, c.Attr<int>("axis")));
  const float order = c.Attr<float>("porder");
  if (!(order > 0) || std::isinf(order)) return c.Error("porder (", order, ") must be finite and above 0");
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) {
      out.Append(x[i]);
    } else if (c.Attr<bool>("keepdim")) {
      out.Append(1);
    }
  }
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class PNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    order_ = static_cast<double>(k.Attr<float>("porder"));
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim line) {
      const double powers = SumOf<double>(view_.width, [&](Dim i) {
        return std::pow(std::abs(static_cast<double>(x[begin + i * view_.inner])), order_);
      });
      out[line] = static_cast<T>(std::pow(powers, 1 / order_));
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  double order_ = 2;
  AxisView view_;
};

template <typename Device, typename T>
class PNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, dout_, dx_);
    order_ = static_cast<double>(k.Attr<float>("porder"));
    epsilon_ = static_cast<double>(k.Attr<float>("epsilon"));
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", view_.lines()));
    return RequireCount(k, "Out@GRAD", view_.lines());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim line) {
      const double divisor = std::pow(static_cast<double>(out[line]), order_ - 1) + epsilon_;
      const double factor = static_cast<double>(dout[line]) / divisor;
      for (Dim i = 0; i < view_.width; ++i) {
        const Dim at = begin + i * view_.inner;
        dx[at] = static_cast<T>(factor * Slope(static_cast<double>(x[at])));
      }
    });
    return OkStatus();
  }

 private:
  // The derivative of |x|^porder / porder; 0 at 0, NaN at NaN.
  double Slope(double x) const { return x == 0 ? 0 : std::copysign(std::pow(std::abs(x), order_ - 1), x); }

  In<"X"> x_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  double order_ = 2, epsilon_ = 0;
  AxisView view_;
};

}  // namespace

void RegisterPNorm(OpRegistry& ops) {
  ops.Add("p_norm")
      .Doc("The p-norm of vectors along one axis.", kDoc)
      .Input("X", "of rank 1 or more", Floats())
      .Output("Out", "one norm per vector", SameTypeAs("X"))
      .Attr("porder", 2.0f, "p: finite and above 0")
      .Attr("axis", -1, "the axis of the vectors")
      .Attr("epsilon", 1.0e-12f, "keeps the divisor of the gradient away from zero", AtLeast(0))
      .Attr("keepdim", false, "whether the dimension becomes 1 instead of being removed")
      .InferShape(InferPNorm)
      .Kernel<Cpu, PNormKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}})
      .GradKernel<Cpu, PNormGradKernel, float, double>();
}

}  // namespace penstock
