// pow: each element to a power that is the same for all.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/require_shape.h"
#include "operators/rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X ^ factor. FactorTensor, where given, holds the factor in its one element. NaN where X is negative
and the factor has a fraction.)";

Status InferPow(InferContext& c) {
  if (c.HasInput("FactorTensor") && !Compatible(c.ShapeOf("FactorTensor").Count(), 1)) {
    return c.Error("FactorTensor (", c.ShapeOf("FactorTensor"), ") must hold one element");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class PowKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    given_ = k.Input("FactorTensor");
    factor_ = static_cast<T>(k.Attr<float>("factor"));
    return RequireTensor(k, "X");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const T factor = given_ ? *k[given_].template Data<T>() : factor_;
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = std::pow(x[i], factor);
    return OkStatus();
  }

 private:
  Operand x_, given_, out_;
  T factor_ = 1;
};

template <typename Device, typename T>
class PowGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    given_ = k.Input("FactorTensor");
    factor_ = static_cast<T>(k.Attr<float>("factor"));
    if (given_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "FactorTensor", 1));
    return RequireShape(k, "Out@GRAD", x_.shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const T factor = given_ ? *k[given_].template Data<T>() : factor_;
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) dx[i] = dout[i] * factor * std::pow(x[i], factor - T{1});
    return OkStatus();
  }

 private:
  Operand x_, given_, dout_, dx_;
  T factor_ = 1;
};

}  // namespace

void RegisterPow(OpRegistry& ops) {
  ops.Add("pow")
      .Doc("Each element to one power.", kDoc)
      .Input("X", "any shape", Floats())
      .Input("FactorTensor", "one element that is used instead of `factor`", SameTypeAs("X"), Optional())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("factor", 1.0f, "the power")
      .InferShape(InferPow)
      .Elementwise()
      .Kernel<Cpu, PowKernel, float, double>()
      .Grad({.reads = {"X", "FactorTensor"}, .yields = {"X"}})
      .GradKernel<Cpu, PowGradKernel, float, double>();
}

}  // namespace penstock
