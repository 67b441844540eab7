#include "framework/vector/trigonometric.h"

#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/trigonometric.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/doubles_inl.h"
#include "framework/vector/lanes_inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

struct Sine {
  static constexpr double kShift = 0;
  static float Of(float x) { return std::sin(x); }
};
struct Cosine {
  static constexpr double kShift = 0.5;  // cos(x) = sin(x + pi / 2)
  static float Of(float x) { return std::cos(x); }
};

// sin(x + shift * pi) for x up to 2^21. No product is fused.
HWY_INLINE Double SineNear(Doubles d, Double x, double shift) {
  const auto at = [d](double value) { return hn::Set(d, value); };
  // The number of half turns, rounded by an addition after which the last bit of a double is 1.
  const Double rounding = at(0x1.8p52);
  const Double counted = hn::Add(hn::Add(hn::Mul(x, at(0.31830988618379067)), at(shift)), rounding);
  const Double turns = hn::Sub(hn::Sub(counted, rounding), at(shift));
  // Pi in three parts. The first two have 31 bits, so their products are exact.
  Double r = hn::Sub(x, hn::Mul(turns, at(0x1.921fb544p+1)));
  r = hn::Sub(r, hn::Mul(turns, at(0x1.0b4611a4p-33)));
  r = hn::Sub(r, hn::Mul(turns, at(0x1.13198a2e03707p-64)));
  // r * (1 + s * p(s)), p fitted to sin(r) on [-pi / 2, pi / 2] with a relative error of 1.2e-10.
  const Double s = hn::Mul(r, r);
  Double p = hn::Add(hn::Mul(at(-2.4075322404893047e-08), s), at(2.7536252737798872e-06));
  p = hn::Add(hn::Mul(p, s), at(-0.00019841083766055644));
  p = hn::Add(hn::Mul(p, s), at(0.008333332757219366));
  p = hn::Add(hn::Mul(p, s), at(-0.1666666666380982));
  const Double y = hn::Mul(r, hn::Add(at(1), hn::Mul(s, p)));
  // Negative after an odd number of half turns.
  const hn::RebindToUnsigned<Doubles> bits;
  return hn::Xor(y, hn::BitCast(d, hn::ShiftLeft<63>(hn::BitCast(bits, counted))));
}

template <class Wave>
HWY_NOINLINE Double WaveFar(Doubles d, Double x) {
  HWY_ALIGN double lanes[kDoubles];
  hn::Store(x, d, lanes);
  for (double& lane : lanes) lane = static_cast<double>(Wave::Of(static_cast<float>(lane)));
  return hn::Load(d, lanes);
}

template <class Wave>
HWY_INLINE Double WaveOf(Doubles d, Double x) {
  const auto near = hn::Le(hn::Abs(x), hn::Set(d, 0x1p21));
  const Double y = SineNear(d, x, Wave::kShift);
  if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
  return hn::IfThenElse(near, y, WaveFar<Wave>(d, x));
}

void Sin(const float* x, float* y, std::size_t count) {
  MapInDoubles(x, y, count, [](Doubles d, Double v) { return WaveOf<Sine>(d, v); });
}
void Cos(const float* x, float* y, std::size_t count) {
  MapInDoubles(x, y, count, [](Doubles d, Double v) { return WaveOf<Cosine>(d, v); });
}
void SinGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  MapInDoubles(
      x, dy, dx, count, [](Doubles d, Double v) { return WaveOf<Cosine>(d, v); },
      [](Narrow, NarrowVector dv, NarrowVector slope) { return hn::Mul(dv, slope); });
}
void CosGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  MapInDoubles(
      x, dy, dx, count, [](Doubles d, Double v) { return WaveOf<Sine>(d, v); },
      [](Narrow, NarrowVector dv, NarrowVector slope) { return hn::Mul(hn::Neg(dv), slope); });
}

void Asin(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return hn::Asin(d, v); });
}
void Acos(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return hn::Acos(d, v); });
}
void Atan(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return hn::Atan(d, v); });
}

HWY_INLINE Vector RootOfRest(Floats d, Vector x) {
  return hn::Sqrt(hn::Sub(hn::Set(d, 1.0f), hn::Mul(x, x)));
}
void AsinGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) { return hn::Div(dv, RootOfRest(d, v)); });
}
void AcosGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) { return hn::Div(hn::Neg(dv), RootOfRest(d, v)); });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Sin);
HWY_EXPORT(Cos);
HWY_EXPORT(Asin);
HWY_EXPORT(Acos);
HWY_EXPORT(Atan);
HWY_EXPORT(SinGrad);
HWY_EXPORT(CosGrad);
HWY_EXPORT(AsinGrad);
HWY_EXPORT(AcosGrad);

void Sin(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Sin)(x, y, count); }
void Cos(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Cos)(x, y, count); }
void Asin(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Asin)(x, y, count); }
void Acos(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Acos)(x, y, count); }
void Atan(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Atan)(x, y, count); }

void SinGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SinGrad)(x, dy, dx, count);
}
void CosGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(CosGrad)(x, dy, dx, count);
}
void AsinGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AsinGrad)(x, dy, dx, count);
}
void AcosGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AcosGrad)(x, dy, dx, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
