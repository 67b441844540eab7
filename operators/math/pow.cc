// pow: raises each element to one power.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "framework/vector/powers.h"
#include "operators/common/float_attr.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X ^ factor. FactorTensor, if given, replaces the attribute; it has one element. The result is NaN where
X is negative and the factor is not an integer. Integers may be raised only to integral factors of at least 0;
the result wraps around.)";

Status InferPow(InferContext& c) {
  if (c.HasInput("FactorTensor") && !Compatible(c.ShapeOf("FactorTensor").Count(), 1)) {
    return c.Error("FactorTensor (", c.ShapeOf("FactorTensor"), ") must hold one element");
  }
  return c.ShareAll("X", "Out");
}

constexpr double kPowerNs = 2;  // of an element

template <typename T>
T Power(T x, T factor) {
  if constexpr (std::is_integral_v<T>) {
    std::uint64_t result = 1;
    for (auto base = static_cast<std::uint64_t>(x); factor > 0; factor /= 2, base *= base)
      if (factor % 2 != 0) result *= base;
    return static_cast<T>(result);
  } else {
    return std::pow(x, factor);
  }
}

template <typename T>
void Powers(const T* x, T factor, T* out, Dim count) {
  if constexpr (std::is_same_v<T, float>) {
    vec::Power(factor, x, out, static_cast<std::size_t>(count));
  } else {
    for (Dim i = 0; i < count; ++i) out[i] = Power(x[i], factor);
  }
}
template <typename T>
void PowerSlopes(const T* x, T factor, const T* dout, T* dx, Dim count) {
  if constexpr (std::is_same_v<T, float>) {
    vec::PowerGrad(factor, x, dout, dx, static_cast<std::size_t>(count));
  } else {
    for (Dim i = 0; i < count; ++i) dx[i] = dout[i] * factor * std::pow(x[i], factor - T{1});
  }
}

// Reads the factor from FactorTensor.
double HeldBy(const Tensor& factor) {
  switch (factor.dtype()) {
    case DType::kFp32:
      return *factor.Data<float>();
    case DType::kFp64:
      return *factor.Data<double>();
    case DType::kInt32:
      return *factor.Data<std::int32_t>();
    default:
      return static_cast<double>(*factor.Data<std::int64_t>());
  }
}

template <typename Device, typename T>
class PowKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, given_);
    const auto factor = k.Attr<float>("factor");
    factor_ = ElementFrom<T>(factor);
    if (std::is_integral_v<T> && !given_ && (factor < 0 || static_cast<float>(factor_) != factor))
      return k.Error("factor (", factor, ") must be a whole number of at least 0 for integers");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const double given = given_ ? HeldBy(std::as_const(k[given_])) : 0;
    if (std::is_integral_v<T> && !(given >= 0 && given <= kLargestFactor && std::trunc(given) == given)) {
      return InvalidArgument("E-op-value", "pow: FactorTensor holds ", given,
                             "; integers need a whole number of at least 0");
    }
    const T factor = given_ ? static_cast<T>(given) : factor_;
    ForElements(k[x_].count(), kPowerNs,
                [=](Dim begin, Dim end) { Powers(x + begin, factor, out + begin, end - begin); });
    return OkStatus();
  }

 private:
  static constexpr double kLargestFactor = 1 << 30;

  In<"X"> x_;
  In<"FactorTensor"> given_;
  Out<"Out"> out_;
  T factor_ = 1;
};

template <typename Device, typename T>
class PowGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_, given_);
    factor_ = static_cast<T>(k.Attr<float>("factor"));
    if (given_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "FactorTensor", 1));
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const T factor = given_ ? static_cast<T>(HeldBy(std::as_const(k[given_]))) : factor_;
    ForElements(k[x_].count(), kPowerNs, [=](Dim begin, Dim end) {
      PowerSlopes(x + begin, factor, dout + begin, dx + begin, end - begin);
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"FactorTensor"> given_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  T factor_ = 1;
};

}  // namespace

void RegisterPow(OpRegistry& ops) {
  ops.Add("pow")
      .Doc("Raises each element to one power.", kDoc)
      .Input("X", "any shape", Numbers())
      .Input("FactorTensor", "one element; replaces the attribute factor", Numbers(), Optional())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("factor", 1.0f, "the exponent")
      .InferShape(InferPow)
      .Elementwise()
      .Kernel<Cpu, PowKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"X", "FactorTensor"}, .yields = {"X"}})
      .GradKernel<Cpu, PowGradKernel, float, double>();
}

}  // namespace penstock
