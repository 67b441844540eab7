// l1_norm: the sum of absolute values.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[0] = sum of |X|, computed in double precision in a fixed order. The gradient of an element is Out@GRAD
times its sign, and 0 if the element is 0.)";

template <typename Device, typename T>
class L1NormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    *k[out_].template Data<T>() = static_cast<T>(
        SumOf<double>(k[x_].count(), [x](Dim i) { return std::abs(static_cast<double>(x[i])); }));
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class L1NormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_);
    return RequireCount(k, "Out@GRAD", 1);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T dout = *k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      const T sign = x[i] > T{0} ? T{1} : x[i] < T{0} ? T{-1} : x[i];  // NaN for NaN
      dx[i] = dout * sign;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterL1Norm(OpRegistry& ops) {
  ops.Add("l1_norm")
      .Doc("The sum of all absolute values.", kDoc)
      .Input("X", "any shape", Floats())
      .Output("Out", "one element", SameTypeAs("X"))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .Kernel<Cpu, L1NormKernel, float, double>()
      .Grad({.reads = {"X"}, .yields = {"X"}})
      .GradKernel<Cpu, L1NormGradKernel, float, double>();
}

}  // namespace penstock
