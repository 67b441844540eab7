#include "framework/vector/activations.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/activations.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/doubles_inl.h"
#include "framework/vector/lanes_inl.h"
#include "framework/vector/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

void Selu(float scale, float alpha, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [=](Floats d, Vector v) {
    const Vector zero = hn::Zero(d);
    const Vector less =
        hn::IfThenElse(hn::Lt(v, zero), hn::Expm1(d, hn::Min(v, zero)), v);  // NaN and -0 stay
    const Vector below = hn::Mul(hn::Set(d, alpha), less);
    return hn::Mul(hn::Set(d, scale), hn::IfThenElse(hn::Gt(v, zero), v, below));
  });
}
void SeluGrad(float scale, float alpha, const float* y, const float* dy, float* dx, std::size_t count) {
  const float limit = scale * alpha;
  Map(y, dy, dx, count, [=](Floats d, Vector v, Vector dv) {
    const auto above = hn::Gt(v, hn::Zero(d));
    return hn::Mul(dv, hn::IfThenElse(above, hn::Set(d, scale), hn::Add(v, hn::Set(d, limit))));
  });
}

HWY_INLINE Vector SoftReluOf(Floats d, Vector x, float bound) {
  const Vector most = hn::Set(d, bound), least = hn::Set(d, -bound);
  const Vector raised = hn::IfThenElse(hn::Lt(x, least), least, x);  // NaN stays
  return SoftplusOf(d, hn::IfThenElse(hn::Gt(raised, most), most, raised));
}
void SoftRelu(float bound, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [bound](Floats d, Vector v) { return SoftReluOf(d, v, bound); });
}
void SoftReluGrad(float bound, const float* y, const float* dy, float* dx, std::size_t count) {
  const Floats all;
  const Vector least = SoftReluOf(all, hn::Set(all, -bound), bound);
  const Vector most = SoftReluOf(all, hn::Set(all, bound), bound);
  Map(y, dy, dx, count, [=](Floats d, Vector v, Vector dv) {
    const auto between = hn::And(hn::Gt(v, least), hn::Lt(v, most));
    const Vector slope = hn::Neg(hn::Expm1(d, hn::Neg(v)));
    return hn::IfThenElse(hn::IsNaN(v), v, hn::IfThenElseZero(between, hn::Mul(dv, slope)));
  });
}

// From here on tanh(x) and tanh(softplus(x)) are 1 in float, and tanh(softplus(-x)) is exp(-x).
constexpr float kMishNear = 20;

// What mish and its gradient have in common.
struct MishParts {
  Vector tanh;   // of p
  Vector slope;  // 1 - tanh(p)^2
  Vector share;  // 1 - exp(-p)
};
// For p = log(1 + e), e = exp(x): with w = e * (e + 2), tanh(p) = w / (w + 2).
HWY_INLINE MishParts MishNear(Floats d, Vector x) {
  const Vector one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f), near = hn::Set(d, kMishNear);
  const Vector e = Exp(d, hn::Min(x, near)), e1 = hn::Add(e, one);
  const Vector w = hn::Mul(e, hn::Add(e, two)), w2 = hn::Add(w, two);
  const Vector ratio = hn::Div(hn::Add(e1, e1), w2);
  return {hn::Div(w, w2), hn::IfThenZeroElse(hn::Gt(x, near), hn::Mul(ratio, ratio)), hn::Div(e, e1)};
}
HWY_INLINE MishParts MishOf(Floats d, Vector x, float bound) {
  MishParts parts = MishNear(d, x);
  if (bound >= kMishNear) return parts;
  const Vector one = hn::Set(d, 1.0f);
  const auto above = hn::Gt(x, hn::Set(d, bound)), below = hn::Lt(x, hn::Set(d, -bound));
  const Vector p = hn::IfThenElse(above, x, Exp(d, x)), tanh = Tanh(d, p);
  const auto far = hn::Or(above, below);
  return {hn::IfThenElse(far, tanh, parts.tanh),
          hn::IfThenElse(far, hn::NegMulAdd(tanh, tanh, one), parts.slope),
          hn::IfThenElse(far, hn::Neg(hn::Expm1(d, hn::Neg(p))), parts.share)};
}
void Mish(float bound, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [bound](Floats d, Vector v) { return hn::Mul(v, MishOf(d, v, bound).tanh); });
}
void MishGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [bound](Floats d, Vector v, Vector dv) {
    const MishParts parts = MishOf(d, v, bound);
    const Vector bend = hn::Mul(hn::Mul(v, parts.slope), parts.share);
    return hn::Mul(dv, hn::Add(parts.tanh, bend));
  });
}

void ScaledTanh(float inner, float outer, const float* x, float* y, std::size_t count) {
  Map(x, y, count,
      [=](Floats d, Vector v) { return hn::Mul(hn::Set(d, outer), Tanh(d, hn::Mul(hn::Set(d, inner), v))); });
}
void ScaledTanhGrad(float inner, float outer, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [=](Floats d, Vector v, Vector dv) {
    const Vector tanh = Tanh(d, hn::Mul(hn::Set(d, inner), v));
    const Vector scaled = hn::Mul(hn::Mul(dv, hn::Set(d, inner)), hn::Set(d, outer));
    return hn::Mul(scaled, hn::NegMulAdd(tanh, tanh, hn::Set(d, 1.0f)));
  });
}

HWY_INLINE Double TanhShrinkOf(Doubles d, Double x) {
  const auto at = [d](double value) { return hn::Set(d, value); };
  // Near 0 the series, whose next term is below 1e-8 of the result.
  const Double s = hn::Mul(x, x);
  Double p = hn::MulAdd(at(17.0 / 315), s, at(-2.0 / 15));
  p = hn::MulAdd(p, s, at(1.0 / 3));
  const Double near = hn::Mul(hn::Mul(x, s), p);
  // Beyond, tanh(x) = (e - 1) / (e + 1), e = exp(2 x).
  const Double e = hn::Exp(d, hn::Mul(hn::Min(hn::Max(x, at(-40)), at(40)), at(2)));
  const Double far = hn::Sub(x, hn::Div(hn::Sub(e, at(1)), hn::Add(e, at(1))));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), at(0.0625)), near, far);
}
void TanhShrink(const float* x, float* y, std::size_t count) {
  EachVectorOf(Narrow(), count, [=](Narrow d, std::size_t i, std::size_t n) {
    const NarrowVector shrunk = Narrowed(TanhShrinkOf(Doubles(), Widened(Load(d, x + i, n))));
    Store(d, hn::Add(shrunk, hn::Zero(d)), y + i, n);  // makes -0 to 0
  });
}
void TanhShrinkGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) {
    const Vector tanh = Tanh(d, v);
    return hn::Mul(hn::Mul(dv, tanh), tanh);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Selu);
HWY_EXPORT(SeluGrad);
HWY_EXPORT(SoftRelu);
HWY_EXPORT(SoftReluGrad);
HWY_EXPORT(Mish);
HWY_EXPORT(MishGrad);
HWY_EXPORT(ScaledTanh);
HWY_EXPORT(ScaledTanhGrad);
HWY_EXPORT(TanhShrink);
HWY_EXPORT(TanhShrinkGrad);

void Selu(float scale, float alpha, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Selu)(scale, alpha, x, y, count);
}
void SeluGrad(float scale, float alpha, const float* y, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SeluGrad)(scale, alpha, y, dy, dx, count);
}
void SoftRelu(float bound, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftRelu)(bound, x, y, count);
}
void SoftReluGrad(float bound, const float* y, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftReluGrad)(bound, y, dy, dx, count);
}
void Mish(float bound, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Mish)(bound, x, y, count);
}
void MishGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(MishGrad)(bound, x, dy, dx, count);
}
void ScaledTanh(float inner, float outer, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ScaledTanh)(inner, outer, x, y, count);
}
void ScaledTanhGrad(float inner, float outer, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ScaledTanhGrad)(inner, outer, x, dy, dx, count);
}
void TanhShrink(const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(TanhShrink)(x, y, count);
}
void TanhShrinkGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(TanhShrinkGrad)(x, dy, dx, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
