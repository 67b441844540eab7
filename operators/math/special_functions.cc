// acos, asin, erf, log1p: further functions of one element without attributes.
#include <cmath>
#include <cstddef>
#include <numbers>

#include "framework/vector/functions.h"
#include "framework/vector/trigonometric.h"
#include "operators/math/activation.h"

namespace penstock {
namespace {

struct Acos {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::acos(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return -dout / std::sqrt(T{1} - x * x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Acos(x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::AcosGrad(x, dout, dx, count);
  }
};

struct Asin {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::asin(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / std::sqrt(T{1} - x * x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Asin(x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::AsinGrad(x, dout, dx, count);
  }
};

struct Erf {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::erf(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Erf(x, out, count); }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout * static_cast<T>(2 * std::numbers::inv_sqrtpi) * std::exp(-x * x);
  }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::ErfGrad(x, dout, dx, count);
  }
};

struct Log1p {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::log1p(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Log1p(x, out, count); }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / (T{1} + x);
  }
};

}  // namespace

void RegisterSpecialFunctions(OpRegistry& ops) {
  AddActivation<Acos>(ops, "acos", "The arc cosine of each element.",
                      "Out = acos(X), in [0, pi]; NaN where X is outside [-1, 1]");
  AddActivation<Asin>(ops, "asin", "The arc sine of each element.",
                      "Out = asin(X), in [-pi / 2, pi / 2]; NaN where X is outside [-1, 1]");
  AddActivation<Erf>(ops, "erf", "The error function of each element.",
                     "Out = 2 / sqrt(pi) * (the integral of exp(-t * t) from 0 to X)");
  AddActivation<Log1p>(ops, "log1p", "The logarithm of each element plus 1.",
                       "Out = log(1 + X), accurate for small X; NaN where X is below -1")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("use_cudnn", false, kNoEffect);
}

}  // namespace penstock
