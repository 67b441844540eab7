// relu, sigmoid, exp, floor and similar functions of one element without attributes.
#include "framework/vector/activations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "framework/vector/functions.h"
#include "framework/vector/piecewise.h"
#include "framework/vector/powers.h"
#include "framework/vector/trigonometric.h"
#include "operators/common/float_attr.h"
#include "operators/common/nan.h"
#include "operators/math/activation.h"
#include "operators/math/second_order.h"

namespace penstock {
namespace {

struct Relu {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return x <= T{0} ? T{0} : x;
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return Choose(out > T{0}, dout, T{0}, out);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Relu(x, out, count); }
  static void DxOf(const float* out, const float* dout, float* dx, std::size_t count) {
    vec::AboveGrad(0, out, dout, dx, count);
  }
};

struct Sigmoid {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return T{1} / (T{1} + std::exp(-x));
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return dout * out * (T{1} - out);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Sigmoid(x, out, count); }
};

struct Tanh {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return std::tanh(x);
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return dout * (T{1} - out * out);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Tanh(x, out, count); }
};

struct Sqrt {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return std::sqrt(x);
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return T{0.5} * dout / out;
  }
  template <typename T>
  static T Second(T out, T dx, T ddx) {
    return -dx * ddx / out;
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Root(x, out, count); }
};

struct Square {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(x));  // may wrap
    } else {
      return x * x;
    }
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout * T{2} * x;
  }
  template <typename T>
  static T Second(T, T dout, T ddx) {
    return T{2} * dout * ddx;
  }
};

struct Abs {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? static_cast<T>(-static_cast<std::uint64_t>(x)) : x;  // the smallest integer stays itself
    } else {
      return std::abs(x);
    }
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return x > T{0} ? dout : Choose(x < T{0}, -dout, T{0}, x);
  }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::AbsGrad(x, dout, dx, count);
  }
};

struct Exp {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    if constexpr (std::is_integral_v<T>) {
      return ElementFrom<T>(std::exp(static_cast<double>(x)));
    } else {
      return std::exp(x);
    }
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return dout * out;
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Exp(x, out, count); }
};

struct Log {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::log(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / x;
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Log(x, out, count); }
};

struct Sin {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::sin(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout * std::cos(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Sin(x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::SinGrad(x, dout, dx, count);
  }
};

struct Cos {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::cos(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return -dout * std::sin(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Cos(x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::CosGrad(x, dout, dx, count);
  }
};

struct Reciprocal {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return T{1} / x;
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return -dout * out * out;
  }
};

struct Rsqrt {
  static constexpr Reads kReads = Reads::kOut;
  template <typename T>
  static T Out(T x) {
    return T{1} / std::sqrt(x);
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return T{-0.5} * dout * out * out * out;
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::InverseRoot(x, out, count); }
};

struct Softsign {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return x / (T{1} + std::abs(x));
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / ((T{1} + std::abs(x)) * (T{1} + std::abs(x)));
  }
};

// Arranged so that exp never overflows.
struct Softplus {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / (T{1} + std::exp(-x));
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Softplus(1, x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::SoftplusGrad(1, x, dout, dx, count);
  }
};

struct Atan {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::atan(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / (T{1} + x * x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Atan(x, out, count); }
};

// -softplus(-x), which does not overflow either.
struct LogSigmoid {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return std::min(x, T{0}) - std::log1p(std::exp(-std::abs(x)));
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout / (T{1} + std::exp(x));
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Softplus(-1, x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::SoftplusGrad(-1, x, dout, dx, count);
  }
};

struct TanhShrink {
  static constexpr Reads kReads = Reads::kX;
  template <typename T>
  static T Out(T x) {
    return x - std::tanh(x);
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout * std::tanh(x) * std::tanh(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::TanhShrink(x, out, count); }
  static void DxOf(const float* x, const float* dout, float* dx, std::size_t count) {
    vec::TanhShrinkGrad(x, dout, dx, count);
  }
};

// Step functions, whose gradient is zero everywhere, also at the steps.
struct Step {
  static constexpr Reads kReads = Reads::kNothing;
  template <typename T>
  static T Dx(T, T) {
    return T{0};
  }
};
struct Floor : Step {
  template <typename T>
  static T Out(T x) {
    return std::floor(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Floor(x, out, count); }
};
struct Ceil : Step {
  template <typename T>
  static T Out(T x) {
    return std::ceil(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Ceil(x, out, count); }
};
struct Round : Step {
  template <typename T>
  static T Out(T x) {
    return std::nearbyint(x);
  }
  static void OutOf(const float* x, float* out, std::size_t count) { vec::Round(x, out, count); }
};

}  // namespace

template <>
inline constexpr bool kTakesRows<Abs> = true;
template <>
inline constexpr bool kTakesRows<Sqrt> = true;
template <>
inline constexpr bool kTakesRows<Square> = true;
template <>
inline constexpr Kept kKept<Square> = Kept::kDout;
template <>
inline constexpr Kept kKept<Sqrt> = Kept::kDx;
template <>
inline constexpr bool kTakesIntegers<Square> = true;
template <>
inline constexpr bool kTakesIntegers<Abs> = true;
template <>
inline constexpr bool kTakesIntegers<Exp> = true;

namespace {

OpDef& WithBackends(OpDef& def) {
  return def.Attr("use_mkldnn", false, kNoEffect).Attr("use_cudnn", false, kNoEffect);
}

template <typename Math>
OpDef& Add(OpRegistry& ops, const std::string& type, std::string summary, const std::string& doc) {
  return WithBackends(AddActivation<Math>(ops, type, std::move(summary), doc));
}

// An activation with a second-order gradient.
template <typename Math>
void AddTwice(OpRegistry& ops, const std::string& type, std::string summary, const std::string& doc) {
  WithBackends(AddSecondOrder<Math>(ops, Add<Math>(ops, type, std::move(summary), doc)));
}

}  // namespace

void RegisterActivations(OpRegistry& ops) {
  AddTwice<Relu>(ops, "relu", "Sets negative elements to zero.", "Out = max(X, 0); the gradient at 0 is 0");
  Add<Sigmoid>(ops, "sigmoid", "The logistic function of each element.", "Out = 1 / (1 + exp(-X))");
  Add<Tanh>(ops, "tanh", "The hyperbolic tangent of each element.", "Out = tanh(X)");
  AddTwice<Sqrt>(ops, "sqrt", "The square root of each element.", "Out = X ^ 0.5; NaN where X is negative");
  AddTwice<Square>(ops, "square", "The square of each element.", "Out = X * X");
  Add<Abs>(ops, "abs", "The absolute value of each element.", "Out = |X|; the gradient at 0 is 0");
  Add<Exp>(ops, "exp", "The exponential of each element.",
           "Out = exp(X); for integers, truncated and limited to the largest integer");
  Add<Log>(ops, "log", "The natural logarithm of each element.", "Out = log(X); NaN where X is negative");
  Add<Sin>(ops, "sin", "The sine of each element.", "Out = sin(X), X in radians");
  Add<Cos>(ops, "cos", "The cosine of each element.", "Out = cos(X), X in radians");
  Add<Reciprocal>(ops, "reciprocal", "The reciprocal of each element.",
                  "Out = 1 / X; infinite where X is zero");
  Add<Rsqrt>(ops, "rsqrt", "The reciprocal square root of each element.", "Out = X ^ -0.5");
  Add<Softsign>(ops, "softsign", "Maps each element to (-1, 1).", "Out = X / (1 + |X|)");
  Add<Softplus>(ops, "softplus", "A smooth max(X, 0).", "Out = log(1 + exp(X))");
  AddActivation<Atan>(ops, "atan", "The arc tangent of each element.", "Out = atan(X), in radians");
  Add<LogSigmoid>(ops, "logsigmoid", "The logarithm of the logistic function.", "Out = -log(1 + exp(-X))");
  Add<TanhShrink>(ops, "tanh_shrink", "The difference between each element and its tanh.",
                  "Out = X - tanh(X)");
  Add<Floor>(ops, "floor", "Rounds each element down.", "Out = the largest integer <= X; the gradient is 0");
  Add<Ceil>(ops, "ceil", "Rounds each element up.", "Out = the smallest integer >= X; the gradient is 0");
  Add<Round>(ops, "round", "Rounds each element to the nearest integer.",
             "Out = the nearest integer, halves to even; the gradient is 0");
}

}  // namespace penstock
