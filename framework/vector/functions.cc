#include "framework/vector/functions.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/functions.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

void ExpOf(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return Exp(d, v); });
}
void LogOf(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return Log(d, v); });
}
void TanhOf(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return Tanh(d, v); });
}
void SigmoidOf(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return Sigmoid(d, v); });
}
void ErfOf(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return Erf(d, v); });
}

void ErfGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) {
    const Vector scaled = hn::Mul(dv, hn::Set(d, 1.1283791670955126f));  // 2 / sqrt(pi)
    return hn::Mul(scaled, Exp(d, hn::Neg(hn::Mul(v, v))));
  });
}
void LogOfNext(const float* x, float* y, std::size_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Map(x, y, count, [](Floats d, Vector v) {
    const Vector pole = hn::Set(d, -1.0f), endless = hn::Set(d, kInfinity);
    Vector log = hn::Log1p(d, v);
    log = hn::IfThenElse(hn::Eq(v, pole), hn::Neg(endless), log);
    log = hn::IfThenElse(hn::Lt(v, pole), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), log);
    return hn::IfThenElse(hn::Or(hn::Eq(v, endless), hn::IsNaN(v)), v, log);
  });
}

void Softplus(float sign, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [sign](Floats d, Vector v) {
    const Vector signs = hn::Set(d, sign);
    return hn::Mul(signs, SoftplusOf(d, hn::Mul(v, signs)));
  });
}
void SoftplusGrad(float sign, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count,
      [sign](Floats d, Vector v, Vector dv) { return SigmoidTimes(d, dv, hn::Mul(v, hn::Set(d, sign))); });
}

void Swish(float beta, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [beta](Floats d, Vector v) { return SigmoidTimes(d, v, hn::Mul(v, hn::Set(d, beta))); });
}
void SwishGrad(float beta, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [beta](Floats d, Vector v, Vector dv) {
    const Vector one = hn::Set(d, 1.0f), scaled = hn::Mul(v, hn::Set(d, beta)), s = Sigmoid(d, scaled);
    const Vector slope = hn::MulAdd(scaled, hn::Sub(one, s), one);
    return hn::Mul(dv, hn::Mul(s, slope));
  });
}

void Elu(float alpha, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [alpha](Floats d, Vector v) {
    const Vector zero = hn::Zero(d);
    const Vector below = hn::Mul(hn::Set(d, alpha), hn::Expm1(d, hn::Min(v, zero)));
    return hn::IfThenElse(hn::Lt(v, zero), below, v);  // NaN stays
  });
}

void EluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [alpha](Floats d, Vector v, Vector dv) {
    const Vector below = hn::Mul(hn::Mul(dv, hn::Set(d, alpha)), Exp(d, v));
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), dv, below);
  });
}

// 1 + erf(x / sqrt(2)): twice the standard normal distribution function.
HWY_INLINE Vector TwiceNormal(Floats d, Vector x) {
  return hn::Add(hn::Set(d, 1.0f), Erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752f))));
}
void Gelu(const float* x, float* y, std::size_t count) {
  Map(x, y, count,
      [](Floats d, Vector v) { return hn::Mul(hn::Mul(hn::Set(d, 0.5f), v), TwiceNormal(d, v)); });
}
void GeluGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) {
    const Vector half = hn::Set(d, 0.5f), root = hn::Set(d, 0.39894228040143268f);  // 1 / sqrt(2 pi)
    const Vector density = hn::Mul(Exp(d, hn::Mul(hn::Mul(hn::Neg(half), v), v)), root);
    return hn::Mul(dv, hn::MulAdd(v, density, hn::Mul(half, TwiceNormal(d, v))));
  });
}

constexpr float kGeluFactor = 0.79788456080286536f, kGeluCubic = 0.044715f;

HWY_INLINE Vector GeluTanhOf(Floats d, Vector x, Vector square) {
  const Vector slope = hn::MulAdd(square, hn::Set(d, kGeluCubic), hn::Set(d, 1.0f));
  return Tanh(d, hn::Mul(hn::Mul(hn::Set(d, kGeluFactor), x), slope));
}
void GeluByTanh(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) {
    const Vector tanh = GeluTanhOf(d, v, hn::Mul(v, v));
    return hn::Mul(hn::Mul(hn::Set(d, 0.5f), v), hn::Add(hn::Set(d, 1.0f), tanh));
  });
}
void GeluByTanhGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) {
    const Vector one = hn::Set(d, 1.0f), square = hn::Mul(v, v), tanh = GeluTanhOf(d, v, square);
    const Vector inner =
        hn::Mul(hn::Set(d, kGeluFactor), hn::MulAdd(square, hn::Set(d, 3 * kGeluCubic), one));
    const Vector bend = hn::Mul(hn::Mul(v, hn::NegMulAdd(tanh, tanh, one)), inner);
    return hn::Mul(hn::Mul(dv, hn::Set(d, 0.5f)), hn::Add(hn::Add(one, tanh), bend));
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(ExpOf);
HWY_EXPORT(LogOf);
HWY_EXPORT(TanhOf);
HWY_EXPORT(SigmoidOf);
HWY_EXPORT(ErfOf);
HWY_EXPORT(ErfGrad);
HWY_EXPORT(LogOfNext);
HWY_EXPORT(Softplus);
HWY_EXPORT(SoftplusGrad);
HWY_EXPORT(Swish);
HWY_EXPORT(SwishGrad);
HWY_EXPORT(Elu);
HWY_EXPORT(EluGrad);
HWY_EXPORT(Gelu);
HWY_EXPORT(GeluGrad);
HWY_EXPORT(GeluByTanh);
HWY_EXPORT(GeluByTanhGrad);

void Exp(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(ExpOf)(x, y, count); }
void Log(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(LogOf)(x, y, count); }
void Tanh(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(TanhOf)(x, y, count); }
void Sigmoid(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(SigmoidOf)(x, y, count); }
void Erf(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(ErfOf)(x, y, count); }
void ErfGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ErfGrad)(x, dy, dx, count);
}
void Log1p(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(LogOfNext)(x, y, count); }

void Softplus(float sign, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Softplus)(sign, x, y, count);
}
void SoftplusGrad(float sign, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftplusGrad)(sign, x, dy, dx, count);
}
void Swish(float beta, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Swish)(beta, x, y, count);
}
void SwishGrad(float beta, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SwishGrad)(beta, x, dy, dx, count);
}
void Elu(float alpha, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Elu)(alpha, x, y, count);
}
void EluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(EluGrad)(alpha, x, dy, dx, count);
}

void Gelu(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Gelu)(x, y, count); }
void GeluGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(GeluGrad)(x, dy, dx, count);
}
void GeluByTanh(const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(GeluByTanh)(x, y, count);
}
void GeluByTanhGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(GeluByTanhGrad)(x, dy, dx, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
