// norm: normalises vectors along one axis to length 1.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Norm = sqrt(sum of X * X along dimension `axis` + epsilon), where dimension `axis` becomes 1
Out  = X / Norm)";

Status InferNorm(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.ShapeOf("X"), c.Attr<int>("axis")));
  Shape norm = c.ShapeOf("X");
  norm.Set(axis, 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Norm", norm));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class NormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, norm_, out_);
    epsilon_ = static_cast<double>(k.Attr<float>("epsilon"));
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    return RequireOutput(k, "Norm");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const norms = k[norm_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim line) {
      const T* const from = x + begin;
      const double squares = SumOf<double>(view_.width, [&](Dim i) {
        const auto value = static_cast<double>(from[i * view_.inner]);
        return value * value;
      });
      const T norm = static_cast<T>(std::sqrt(squares + epsilon_));
      norms[line] = norm;
      for (Dim i = 0; i < view_.width; ++i) out[begin + i * view_.inner] = from[i * view_.inner] / norm;
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Norm"> norm_;
  Out<"Out"> out_;
  double epsilon_ = 0;
  AxisView view_;
};

// dX = (dOut - Out * (Out . dOut)) / Norm
template <typename Device, typename T>
class NormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, norm_, dout_, dx_);
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Norm", view_.lines()));
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const norms = k[norm_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim line) {
      const auto norm = static_cast<double>(norms[line]);
      const double along = SumOf<double>(view_.width, [&](Dim i) {
        const Dim at = begin + i * view_.inner;
        return static_cast<double>(x[at]) * static_cast<double>(dout[at]);
      });
      for (Dim i = 0; i < view_.width; ++i) {
        const Dim at = begin + i * view_.inner;
        dx[at] = static_cast<T>(
            (static_cast<double>(dout[at]) - static_cast<double>(x[at]) * along / (norm * norm)) / norm);
      }
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Norm"> norm_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  AxisView view_;
};

}  // namespace

void RegisterNorm(OpRegistry& ops) {
  ops.Add("norm")
      .Doc("Normalises vectors along one axis to length 1.", kDoc)
      .Input("X", "of rank 1 or more", Floats())
      .Output("Norm", "the norm of each vector", SameTypeAs("X"), Intermediate())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .RequiredAttr("axis", AttrKind::kInt, "the axis of the vectors")
      .Attr("epsilon", 1.0e-10f, "avoids a division by 0 for vectors of zeros", AtLeast(0))
      .InferShape(InferNorm)
      .Kernel<Cpu, NormKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Norm"}, .yields = {"X"}})
      .GradKernel<Cpu, NormGradKernel, float, double>();
}

}  // namespace penstock
