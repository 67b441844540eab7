// leaky_relu: negative elements become smaller instead of zero.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"
#include "operators/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X where X > 0, alpha * X elsewhere. The gradient is read from the sign of Out, so alpha must not be
negative where it is used.)";

template <typename Device, typename T>
class LeakyReluKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    alpha_ = static_cast<T>(k.Attr<float>("alpha"));
    if (x_.kind == VarKind::kTensor) return OkStatus();
    return Unimplemented("E-op-rows", "leaky_relu: selected rows are not supported; use a dense tensor");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] > T{0} ? x[i] : alpha_ * x[i];
    return OkStatus();
  }

 private:
  Operand x_, out_;
  T alpha_ = 0;
};

template <typename Device, typename T>
class LeakyReluGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Input("Out");
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    alpha_ = static_cast<T>(k.Attr<float>("alpha"));
    return RequireShape(k, "Out@GRAD", out_.shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[out_].count();
    for (std::int64_t i = 0; i < count; ++i) dx[i] = out[i] > T{0} ? dout[i] : alpha_ * dout[i];
    return OkStatus();
  }

 private:
  Operand out_, dout_, dx_;
  T alpha_ = 0;
};

}  // namespace

void RegisterLeakyRelu(OpRegistry& ops) {
  OpDef& def = ops.Add("leaky_relu")
                   .Doc("Negative elements become smaller.", kDoc)
                   .Input("X", "any shape", Floats())
                   .Output("Out", "shaped like X", SameTypeAs("X"))
                   .Attr("alpha", 0.02f, "what is left of a negative element")
                   .Attr("use_mkldnn", false, kNoEffect)
                   .InferShape(SameShape("X", "Out"))
                   .Elementwise()
                   .Kernel<Cpu, LeakyReluKernel, float, double>()
                   .Grad({.reads_outputs = {"Out"}, .yields = {"X"}})
                   .GradKernel<Cpu, LeakyReluGradKernel, float, double>();
  def.GradDef().InferShape(SameShape("Out", "X@GRAD"));
}

}  // namespace penstock
