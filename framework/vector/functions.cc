#include "framework/vector/functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/functions.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

template <typename Function>
HWY_INLINE void Map(const float* x, float* y, std::size_t count, Function function) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, function(d, Load(d, x + i, n)), y + i, n);
  });
}
template <typename Function>
HWY_INLINE void Map(const float* x, const float* dy, float* dx, std::size_t count, Function function) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, function(d, Load(d, x + i, n), Load(d, dy + i, n)), dx + i, n);
  });
}

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

void Softplus(float sign, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [sign](Floats d, Vector v) {
    const Vector signs = hn::Set(d, sign), zero = hn::Zero(d), s = hn::Mul(v, signs);
    const Vector most = hn::IfThenElse(hn::Lt(s, zero), zero, s);  // NaN stays
    return hn::Mul(signs, hn::Add(most, hn::Log1p(d, Exp(d, hn::Neg(hn::Abs(s))))));
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

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(ExpOf);
HWY_EXPORT(LogOf);
HWY_EXPORT(TanhOf);
HWY_EXPORT(SigmoidOf);
HWY_EXPORT(Softplus);
HWY_EXPORT(SoftplusGrad);
HWY_EXPORT(Swish);
HWY_EXPORT(SwishGrad);
HWY_EXPORT(Elu);

void Exp(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(ExpOf)(x, y, count); }
void Log(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(LogOf)(x, y, count); }
void Tanh(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(TanhOf)(x, y, count); }
void Sigmoid(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(SigmoidOf)(x, y, count); }

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

}  // namespace penstock::vec
#endif  // HWY_ONCE
