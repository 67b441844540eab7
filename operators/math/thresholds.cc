// hard_shrink, softshrink, thresholded_relu, brelu, soft_relu, selu, mish: functions of one element that
// change where it passes a threshold.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "framework/vector/activations.h"
#include "framework/vector/piecewise.h"
#include "operators/common/nan.h"
#include "operators/math/activation.h"

namespace penstock {
namespace {

struct HardShrink {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { threshold = k.Attr<float>("threshold"); }
  template <typename T>
  T Dx(T x, T dout) const {
    const T t = static_cast<T>(threshold);
    return Choose(x < -t || x > t, dout, T{0}, x);
  }
  template <typename T>
  T Out(T x) const {
    return Dx(x, x);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    vec::OutsideGrad(threshold, x, x, out, count);
  }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::OutsideGrad(threshold, x, dout, dx, count);
  }
  float threshold = 0;
};

struct SoftShrink {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { lambda = k.Attr<float>("lambda"); }
  template <typename T>
  T Out(T x) const {
    const T l = static_cast<T>(lambda);
    return x > l ? x - l : Choose(x < -l, x + l, T{0}, x);
  }
  template <typename T>
  T Dx(T x, T dout) const {
    const T l = static_cast<T>(lambda);
    return Choose(x > l || x < -l, dout, T{0}, x);
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::SoftShrink(lambda, x, out, count); }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::OutsideGrad(lambda, x, dout, dx, count);
  }
  float lambda = 0;
};

struct ThresholdedRelu {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { threshold = k.Attr<float>("threshold"); }
  template <typename T>
  T Dx(T x, T dout) const {
    return Choose(x > static_cast<T>(threshold), dout, T{0}, x);
  }
  template <typename T>
  T Out(T x) const {
    return Dx(x, x);
  }
  void OutOf(const float* x, float* out, std::size_t count) const {
    vec::AboveGrad(threshold, x, x, out, count);
  }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::AboveGrad(threshold, x, dout, dx, count);
  }
  float threshold = 0;
};

struct BoundedRelu {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) {
    least = k.Attr<float>("t_min");
    most = k.Attr<float>("t_max");
  }
  template <typename T>
  T Out(T x) const {
    return std::min(std::max(x, static_cast<T>(least)), static_cast<T>(most));
  }
  template <typename T>
  T Dx(T x, T dout) const {
    return Choose(x > static_cast<T>(least) && x < static_cast<T>(most), dout, T{0}, x);
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Clip(least, most, x, out, count); }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::BetweenGrad(least, most, 1, x, dout, dx, count);
  }
  float least = 0, most = 0;
};

// log(1 + exp(x)) for every x, without overflow.
template <typename T>
T SoftPlus(T x) {
  return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

struct SoftRelu {
  static constexpr Reads kReads = Reads::kOut;
  void Read(const KernelSetup& k) { threshold = k.Attr<float>("threshold"); }
  template <typename T>
  T Out(T x) const {
    const T t = static_cast<T>(threshold);
    return SoftPlus(std::min(std::max(x, -t), t));
  }
  template <typename T>
  T Dx(T out, T dout) const {
    const T t = static_cast<T>(threshold);
    return Choose(out > SoftPlus(-t) && out < SoftPlus(t), dout * (T{1} - std::exp(-out)), T{0}, out);
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::SoftRelu(threshold, x, out, count); }
  void DxOf(const float* out, const float* dout, float* dx, std::size_t count) const {
    vec::SoftReluGrad(threshold, out, dout, dx, count);
  }
  float threshold = 0;
};

struct Selu {
  static constexpr Reads kReads = Reads::kOut;
  void Read(const KernelSetup& k) {
    scale = k.Attr<float>("scale");
    alpha = k.Attr<float>("alpha");
  }
  template <typename T>
  T Out(T x) const {
    return static_cast<T>(scale) * (x > T{0} ? x : static_cast<T>(alpha) * std::expm1(x));
  }
  template <typename T>
  T Dx(T out, T dout) const {
    const T s = static_cast<T>(scale);
    return dout * (out > T{0} ? s : out + s * static_cast<T>(alpha));
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Selu(scale, alpha, x, out, count); }
  void DxOf(const float* out, const float* dout, float* dx, std::size_t count) const {
    vec::SeluGrad(scale, alpha, out, dout, dx, count);
  }
  float scale = 1, alpha = 1;
};

struct Mish {
  static constexpr Reads kReads = Reads::kX;
  void Read(const KernelSetup& k) { threshold = k.Attr<float>("threshold"); }
  // The softplus of x, approximated beyond the threshold as in Fluid.
  template <typename T>
  T Plus(T x) const {
    const T t = static_cast<T>(threshold);
    if (x > t) return x;
    return x < -t ? std::exp(x) : SoftPlus(x);
  }
  template <typename T>
  T Out(T x) const {
    return x * std::tanh(Plus(x));
  }
  template <typename T>
  T Dx(T x, T dout) const {
    const T plus = Plus(x), tanh = std::tanh(plus);
    return dout * (tanh + x * (T{1} - tanh * tanh) * -std::expm1(-plus));
  }
  void OutOf(const float* x, float* out, std::size_t count) const { vec::Mish(threshold, x, out, count); }
  void DxOf(const float* x, const float* dout, float* dx, std::size_t count) const {
    vec::MishGrad(threshold, x, dout, dx, count);
  }
  float threshold = 0;
};

}  // namespace

void RegisterThresholds(OpRegistry& ops) {
  AddActivation<HardShrink>(ops, "hard_shrink", "Sets elements of small absolute value to zero.",
                            "Out = X where X > threshold or X < -threshold, 0 elsewhere")
      .Attr("threshold", 0.5f, "the largest absolute value that is set to zero");
  AddActivation<SoftShrink>(ops, "softshrink", "Moves each element towards zero by lambda.",
                            "Out = X - lambda where X > lambda, X + lambda where X < -lambda, 0 elsewhere")
      .Attr("lambda", 0.5f, "the distance");
  AddActivation<ThresholdedRelu>(ops, "thresholded_relu", "Sets elements up to a threshold to zero.",
                                 "Out = X where X > threshold, 0 elsewhere")
      .Attr("threshold", 1.0f, "the largest value that is set to zero");
  AddActivation<BoundedRelu>(ops, "brelu", "Clips each element to [t_min, t_max].",
                             "Out = min(max(X, t_min), t_max); the gradient at both ends is 0")
      .Attr("t_min", 0.0f, "the lower bound")
      .Attr("t_max", 24.0f, "the upper bound");
  AddActivation<SoftRelu>(ops, "soft_relu", "A smooth approximation of relu.",
                          "Out = log(1 + exp(min(max(X, -threshold), threshold)))")
      .Attr("threshold", 40.0f, "the bound of |X|", AtLeast(0));
  AddActivation<Selu>(
      ops, "selu", "The scaled exponential linear unit, which preserves mean and variance.",
      "Out = scale * X where X > 0, scale * alpha * (exp(X) - 1) elsewhere. The gradient depends on the sign "
      "of Out,\nso scale and alpha must be positive if there is a gradient.")
      .Attr("scale", 1.0507009873554804934193349852946f, "the factor of all elements")
      .Attr("alpha", 1.6732632423543772848170429916717f,
            "the negative of the limit for negative elements, divided by scale");
  AddActivation<Mish>(ops, "mish", "Each element times the tanh of its softplus.",
                      "Out = X * tanh(log(1 + exp(X))), where the logarithm is X above threshold and exp(X) "
                      "below -threshold")
      .Attr("threshold", 20.0f, "the bound beyond which the logarithm is approximated");
}

}  // namespace penstock
