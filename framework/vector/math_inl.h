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

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_VECTOR_MATH_INL_H_
