// leaky_relu, elu, gelu, swish and similar functions of one element with attributes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <string>

#include "framework/vector/activations.h"
#include "framework/vector/functions.h"
#include "framework/vector/piecewise.h"
#include "operators/common/nan.h"
#include "operators/math/activation.h"
#include "operators/math/second_order.h"

namespace penstock {
namespace {

AttrCheck NotZero() {
  return {[](const Attr& given) -> std::optional<std::string> {
    if (*AttrAs<float>(given) != 0.0f) return std::nullopt;
    return "other than 0";
  }};
}

template <typename T>
T Logistic(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

struct LeakyRelu {
  static constexpr Reads kReads = Reads::kOut;
  void Read(const KernelSetup& k) { alpha = k.Attr<float>("alpha"); }
  template <typename T>
  T Out(T x) const {
    return x > T{0} ? x : static_cast<T>(alpha) * x;
  }
  template <typename T>
  T Dx(T out, T dout) const {
    return Choose(out > T{0}, dout, static_cast<T>(alpha) * dout, out);
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::LeakyRelu(alpha, x, out, count); }
  void DxOf(const float* out, const float* dout, float* dx, std::size_t count) const {
    vec::LeakyReluGrad(alpha, out, dout, dx, count);
  }
  float alpha = 0;
};

struct Elu {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { alpha = k.Attr<float>("alpha"); }
  template <typename T>
  T Out(T x) const {
    return x > T{0} ? x : static_cast<T>(alpha) * std::expm1(x);
  }
  template <typename T>
  T Dx(T x, T dout) const {
    return x > T{0} ? dout : dout * static_cast<T>(alpha) * std::exp(x);
  }
  template <typename T>
  T Second(T x, T dout, T ddx) const {
    return x > T{0} ? T{0} : ddx * dout * static_cast<T>(alpha) * std::exp(x);
  }
  float alpha = 1;
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Elu(alpha, x, out, count); }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::EluGrad(alpha, x, dout, dx, count);
  }
};

struct Relu6 {
  static constexpr Reads kReads = Reads::kOut;
  void Read(const KernelSetup& k) { threshold = k.Attr<float>("threshold"); }
  template <typename T>
  T Out(T x) const {
    return std::min(std::max(x, T{0}), static_cast<T>(threshold));
  }
  template <typename T>
  T Dx(T out, T dout) const {
    return Choose(out > T{0} && out < static_cast<T>(threshold), dout, T{0}, out);
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Clip(0, threshold, x, out, count); }
  void DxOf(const float* out, const float* dout, float* dx, std::size_t count) const {
    vec::BetweenGrad(0, threshold, 1, out, dout, dx, count);
  }
  float threshold = 6;
};

struct Gelu {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { approximate = k.Attr<bool>("approximate"); }
  template <typename T>
  T Out(T x) const {
    if (approximate) return T{0.5} * x * (T{1} + std::tanh(Inner(x)));
    return T{0.5} * x * (T{1} + std::erf(x * static_cast<T>(std::numbers::sqrt2 / 2)));
  }
  template <typename T>
  T Dx(T x, T dout) const {
    if (approximate) {
      const T t = std::tanh(Inner(x));
      const T inner_slope = Factor<T>() * (T{1} + T{3} * Cubic<T>() * x * x);
      return dout * T{0.5} * (T{1} + t + x * (T{1} - t * t) * inner_slope);
    }
    const T density =
        std::exp(T{-0.5} * x * x) * static_cast<T>(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
    return dout * (T{0.5} * (T{1} + std::erf(x * static_cast<T>(std::numbers::sqrt2 / 2))) + x * density);
  }
  template <typename T>
  static T Factor() {
    return static_cast<T>(std::numbers::inv_sqrtpi * std::numbers::sqrt2);
  }
  template <typename T>
  static T Cubic() {
    return static_cast<T>(0.044715);
  }
  template <typename T>
  static T Inner(T x) {
    return Factor<T>() * (x + Cubic<T>() * x * x * x);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    approximate ? vec::GeluByTanh(x, out, count) : vec::Gelu(x, out, count);
  }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    approximate ? vec::GeluByTanhGrad(x, dout, dx, count) : vec::GeluGrad(x, dout, dx, count);
  }
  bool approximate = false;
};

struct HardSigmoid {
  static constexpr Reads kReads = Reads::kOut;
  void Read(const KernelSetup& k) {
    slope = k.Attr<float>("slope");
    offset = k.Attr<float>("offset");
  }
  template <typename T>
  T Out(T x) const {
    return std::min(std::max(static_cast<T>(slope) * x + static_cast<T>(offset), T{0}), T{1});
  }
  template <typename T>
  T Dx(T out, T dout) const {
    return Choose(out > T{0} && out < T{1}, dout * static_cast<T>(slope), T{0}, out);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    vec::HardSigmoid(slope, offset, x, out, count);
  }
  void DxOf(const float* out, const float* dout, float* dx, std::size_t count) const {
    vec::BetweenGrad(0, 1, slope, out, dout, dx, count);
  }
  float slope = 0, offset = 0;
};

struct HardSwish {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) {
    threshold = k.Attr<float>("threshold");
    scale = k.Attr<float>("scale");
    offset = k.Attr<float>("offset");
  }
  template <typename T>
  T Out(T x) const {
    return x * std::min(std::max(x + static_cast<T>(offset), T{0}), static_cast<T>(threshold)) /
           static_cast<T>(scale);
  }
  template <typename T>
  T Dx(T x, T dout) const {
    const T ramp = x + static_cast<T>(offset);
    if (ramp <= T{0}) return T{0};
    const T slope = Choose(ramp < static_cast<T>(threshold), x + ramp, static_cast<T>(threshold), ramp);
    return dout * slope / static_cast<T>(scale);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    vec::HardSwish(offset, threshold, scale, x, out, count);
  }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::HardSwishGrad(offset, threshold, scale, x, dout, dx, count);
  }
  float threshold = 0, scale = 1, offset = 0;
};

struct ScaledTanh {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) {
    inner = k.Attr<float>("scale_a");
    outer = k.Attr<float>("scale_b");
  }
  template <typename T>
  T Out(T x) const {
    return static_cast<T>(outer) * std::tanh(static_cast<T>(inner) * x);
  }
  template <typename T>
  T Dx(T x, T dout) const {
    const T t = std::tanh(static_cast<T>(inner) * x);
    return dout * static_cast<T>(inner) * static_cast<T>(outer) * (T{1} - t * t);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    vec::ScaledTanh(inner, outer, x, out, count);
  }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::ScaledTanhGrad(inner, outer, x, dout, dx, count);
  }
  float inner = 0, outer = 0;
};

struct Swish {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { beta = k.Attr<float>("beta"); }
  template <typename T>
  T Out(T x) const {
    return x * Logistic(static_cast<T>(beta) * x);
  }
  template <typename T>
  T Dx(T x, T dout) const {
    const T share = Logistic(static_cast<T>(beta) * x);
    return dout * share * (T{1} + static_cast<T>(beta) * x * (T{1} - share));
  }
  float beta = 1;
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Swish(beta, x, out, count); }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::SwishGrad(beta, x, dout, dx, count);
  }
};

}  // namespace

template <>
inline constexpr Kept kKept<Elu> = Kept::kDout;

void RegisterActivationsWithAttrs(OpRegistry& ops) {
  OpDef& leaky_relu =
      AddActivation<LeakyRelu>(ops, "leaky_relu", "Multiplies negative elements by a small slope.",
                               "Out = X where X > 0, alpha * X elsewhere. The gradient depends on the sign "
                               "of Out, so alpha must not be\nnegative if there is a gradient.")
          .Attr("alpha", 0.02f, "the slope for negative elements")
          .Attr("use_mkldnn", false, kNoEffect);
  AddSecondOrder<LeakyRelu>(ops, leaky_relu)
      .Attr("alpha", 0.02f, "the slope for negative elements")
      .Attr("use_mkldnn", false, kNoEffect);
  OpDef& elu = AddActivation<Elu>(ops, "elu", "The exponential linear unit.",
                                  "Out = X where X > 0, alpha * (exp(X) - 1) elsewhere")
                   .Attr("alpha", 1.0f, "the negative of the limit for negative elements");
  AddSecondOrder<Elu>(ops, elu).Attr("alpha", 1.0f, "the negative of the limit for negative elements");
  AddActivation<Relu6>(ops, "relu6", "Clips each element to [0, threshold].",
                       "Out = min(max(X, 0), threshold); the gradient at both ends is 0")
      .Attr("threshold", 6.0f, "the upper bound");
  AddActivation<Gelu>(ops, "gelu", "Each element times the standard normal distribution function.",
                      "Out = X / 2 * (1 + erf(X / sqrt(2)));\nwith approximate "
                      "Out = X / 2 * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 * X ^ 3)))")
      .Attr("approximate", false, "whether to use the approximation by tanh")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("use_cudnn", false, kNoEffect);
  AddActivation<HardSigmoid>(ops, "hard_sigmoid", "A piecewise linear sigmoid.",
                             "Out = min(max(slope * X + offset, 0), 1); the gradient at both ends is 0")
      .Attr("slope", 0.2f, "the slope of the middle piece")
      .Attr("offset", 0.5f, "the value at 0");
  AddActivation<HardSwish>(ops, "hard_swish", "Each element times a piecewise linear ramp.",
                           "Out = X * min(max(X + offset, 0), threshold) / scale")
      .Attr("threshold", 6.0f, "the upper bound of the ramp")
      .Attr("scale", 6.0f, "the divisor", NotZero())
      .Attr("offset", 3.0f, "the offset of the ramp");
  AddActivation<ScaledTanh>(ops, "stanh", "A tanh with scaled argument and result.",
                            "Out = scale_b * tanh(scale_a * X)")
      .Attr("scale_a", 0.67f, "the factor of X")
      .Attr("scale_b", 1.7159f, "the factor of the result");
  AddActivation<Swish>(ops, "swish", "Each element times its sigmoid.", "Out = X / (1 + exp(-beta * X))")
      .Attr("beta", 1.0f, "the factor of the argument of the sigmoid")
      .Attr("use_mkldnn", false, kNoEffect);
}

}  // namespace penstock
