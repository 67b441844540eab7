// Functions of vectors of floats, on the functions of Highway's contrib/math, for all arguments: NaN gives
// NaN, infinities and zeros give the limits. Compiled once per instruction set, as lanes_inl.h.
//
// Errors are at most 4 ulp, counted in tests/unit/vector. AVX2 and AVX-512 give the same bytes; instruction
// sets without fused multiply-add (SSE4, base) differ within this bound.
#if defined(PENSTOCK_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_VECTOR_MATH_INL_H_
#undef PENSTOCK_VECTOR_MATH_INL_H_
#else
#define PENSTOCK_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "framework/vector/lanes_inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// e^x
HWY_INLINE Vector Exp(Floats d, Vector x) {
  const Vector y = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// The natural logarithm; NaN below 0.
HWY_INLINE Vector Log(Floats d, Vector x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Vector zero = hn::Zero(d);
  Vector y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -kInfinity), y);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInfinity)), x, y);
  return hn::IfThenElse(hn::Ge(x, zero), y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

HWY_INLINE Vector Tanh(Floats d, Vector x) {
  // tanh is 1 in float from 9.02 on.
  const Vector within = hn::Max(hn::Set(d, -18.0f), hn::Min(x, hn::Set(d, 18.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, within));
}

// factor / (1 + e^-x), without overflow
HWY_INLINE Vector SigmoidTimes(Floats d, Vector factor, Vector x) {
  const Vector e = Exp(d, hn::Neg(hn::Abs(x)));
  const Vector above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(factor, e), factor);
  return hn::Div(above, hn::Add(hn::Set(d, 1.0f), e));
}
HWY_INLINE Vector Sigmoid(Floats d, Vector x) { return SigmoidTimes(d, hn::Set(d, 1.0f), x); }

// log(1 + e^x), without overflow
HWY_INLINE Vector SoftplusOf(Floats d, Vector x) {
  const Vector zero = hn::Zero(d), most = hn::IfThenElse(hn::Lt(x, zero), zero, x);  // NaN stays
  return hn::Add(most, hn::Log1p(d, Exp(d, hn::Neg(hn::Abs(x)))));
}

// The error function.
HWY_INLINE Vector Erf(Floats d, Vector x) {
  const auto at = [d](float value) { return hn::Set(d, value); };
  const Vector t = hn::Min(hn::Abs(x), at(4.0f));  // erf is 1 in float from 3.92 on
  // Near 0, t + t * p(t^2), p fitted to erf(t) / t - 1.
  const Vector s = hn::Mul(t, t);
  Vector p = hn::MulAdd(at(-0.00059721024f), s, at(0.0049899444f));
  p = hn::MulAdd(p, s, at(-0.026764784f));
  p = hn::MulAdd(p, s, at(0.11281779f));
  p = hn::MulAdd(p, s, at(-0.37612492f));
  p = hn::MulAdd(p, s, at(0.12837915f));
  const Vector near = hn::MulAdd(t, p, t);
  // Beyond, 1 - exp(q(t) - t), q fitted to log(erfc(t)) + t on [0.9, 4].
  Vector q = hn::MulAdd(at(1.6102405e-06f), t, at(-4.5512774e-05f));
  q = hn::MulAdd(q, t, at(0.00059209275f));
  q = hn::MulAdd(q, t, at(-0.0047369506f));
  q = hn::MulAdd(q, t, at(0.026355121f));
  q = hn::MulAdd(q, t, at(-0.10996080f));
  q = hn::MulAdd(q, t, at(-0.63195622f));
  q = hn::MulAdd(q, t, at(-0.13015510f));
  q = hn::MulAdd(q, t, at(0.00030026883f));
  const Vector far = hn::Sub(at(1.0f), hn::Exp(d, hn::Sub(q, t)));
  const Vector y = hn::CopySign(hn::IfThenElse(hn::Lt(t, at(0.92f)), near, far), x);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_VECTOR_MATH_INL_H_
