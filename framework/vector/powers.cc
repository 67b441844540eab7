#include "framework/vector/powers.h"

#include <cmath>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/powers.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/doubles_inl.h"
#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// 2^52, and with a number below it in the last bits, that number plus 2^52
constexpr double kWhole = 0x1p52;
// After its addition, the last bits of a double are its whole part, plus 2^51.
constexpr double kRounding = 0x1.8p52;

// The logarithm to base 2 of x, which is normal. The relative error is below 2e-13. No product is fused.
HWY_INLINE Double LogOf(Doubles d, Double x) {
  const auto at = [d](double value) { return hn::Set(d, value); };
  const hn::RebindToUnsigned<Doubles> bits;
  constexpr std::uint64_t kOne = 0x3FF0000000000000, kRootOfHalf = 0x3FE6A09E667F3BCD;
  // x = m * 2^n with m in [sqrt(1 / 2), sqrt(2)]
  const auto given = hn::BitCast(bits, x);
  const auto exponent = hn::ShiftRight<52>(hn::Add(given, hn::Set(bits, kOne - kRootOfHalf)));  // n + 1023
  const Double m = hn::BitCast(d, hn::Add(hn::Sub(given, hn::ShiftLeft<52>(exponent)), hn::Set(bits, kOne)));
  const Double whole = hn::BitCast(d, hn::Or(exponent, hn::BitCast(bits, at(kWhole))));
  const Double n = hn::Sub(whole, at(kWhole + 1023));
  // 2 * atanh(z) / log(2), a polynomial of s = z^2
  const Double z = hn::Div(hn::Sub(m, at(1)), hn::Add(m, at(1))), s = hn::Mul(z, z);
  Double p = hn::Add(hn::Mul(at(0.09681593466080882), s), at(0.11095686690472316));
  p = hn::Add(hn::Mul(p, s), at(0.14285877484175175));
  p = hn::Add(hn::Mul(p, s), at(0.19999999397609577));
  p = hn::Add(hn::Mul(p, s), at(0.33333333333688325));
  const Double log = hn::Mul(hn::Mul(z, at(2.8853900817779268)), hn::Add(at(1), hn::Mul(s, p)));
  return hn::Add(n, log);
}

// 2^x for |x| up to 300. The relative error is below 1e-10. No product is fused.
HWY_INLINE Double PowerOfTwo(Doubles d, Double x) {
  const auto at = [d](double value) { return hn::Set(d, value); };
  const hn::RebindToUnsigned<Doubles> bits;
  const Double counted = hn::Add(x, at(kRounding)), r = hn::Sub(x, hn::Sub(counted, at(kRounding)));
  Double p = hn::Add(hn::Mul(at(1.5297323760701075e-05), r), at(0.0001546144469856913));
  p = hn::Add(hn::Mul(p, r), at(0.001333350238616277));
  p = hn::Add(hn::Mul(p, r), at(0.009618056678524637));
  p = hn::Add(hn::Mul(p, r), at(0.055504108839096185));
  p = hn::Add(hn::Mul(p, r), at(0.24022650922288757));
  p = hn::Add(hn::Mul(p, r), at(0.6931471805599453));
  p = hn::Add(hn::Mul(p, r), at(1));
  const auto shifted = hn::ShiftLeft<52>(hn::BitCast(bits, counted));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, p), shifted));
}

// x ^ exponent for a finite exponent other than 0
struct PowerOf {
  explicit PowerOf(float y)
      : exponent(static_cast<double>(y)), whole(std::trunc(y) == y), odd(whole && std::fmod(y, 2.0f) != 0) {}

  HWY_INLINE Double operator()(Doubles d, Double x) const {
    constexpr double kEndless = std::numeric_limits<double>::infinity();
    const Double size = hn::Abs(x), endless = hn::Set(d, kEndless), zero = hn::Zero(d);
    // Floats end at 2^-149 and 2^128.
    Double power = hn::Mul(LogOf(d, size), hn::Set(d, exponent));
    power = hn::Min(hn::Max(power, hn::Set(d, -300.0)), hn::Set(d, 300.0));
    Double y = PowerOfTwo(d, power);
    y = hn::IfThenElse(hn::Eq(size, zero), hn::Set(d, exponent > 0 ? 0.0 : kEndless), y);
    y = hn::IfThenElse(hn::Eq(size, endless), hn::Set(d, exponent > 0 ? kEndless : 0.0), y);
    y = hn::IfThenElse(hn::IsNaN(x), x, y);
    if (odd) return hn::CopySign(y, x);
    if (whole) return y;
    const auto below = hn::And(hn::Lt(x, zero), hn::Lt(size, endless));
    return hn::IfThenElse(below, hn::Set(d, std::numeric_limits<double>::quiet_NaN()), y);
  }

  double exponent;
  bool whole, odd;
};

void Power(float exponent, const float* x, float* y, std::size_t count) {
  if (exponent == 0) {
    Map(x, y, count, [](Floats d, Vector) { return hn::Set(d, 1.0f); });
  } else if (exponent == 1) {
    Map(x, y, count, [](Floats, Vector v) { return v; });
  } else if (exponent == 2) {
    Map(x, y, count, [](Floats, Vector v) { return hn::Mul(v, v); });
  } else if (std::isfinite(exponent)) {
    MapInDoubles(x, y, count, PowerOf(exponent));
  } else {
    for (std::size_t i = 0; i < count; ++i) y[i] = std::pow(x[i], exponent);
  }
}

void PowerGrad(float exponent, const float* x, const float* dy, float* dx, std::size_t count) {
  const float less = exponent - 1;
  const auto scaled = [exponent](auto d, auto dv) { return hn::Mul(dv, hn::Set(d, exponent)); };
  if (less == 0) {
    Map(x, dy, dx, count, [=](Floats d, Vector, Vector dv) { return scaled(d, dv); });
  } else if (less == 1) {
    Map(x, dy, dx, count, [=](Floats d, Vector v, Vector dv) { return hn::Mul(scaled(d, dv), v); });
  } else if (less == 2) {
    Map(x, dy, dx, count,
        [=](Floats d, Vector v, Vector dv) { return hn::Mul(scaled(d, dv), hn::Mul(v, v)); });
  } else if (std::isfinite(less)) {
    MapInDoubles(x, dy, dx, count, PowerOf(less), [=](Narrow d, NarrowVector dv, NarrowVector power) {
      return hn::Mul(scaled(d, dv), power);
    });
  } else {
    for (std::size_t i = 0; i < count; ++i) dx[i] = dy[i] * exponent * std::pow(x[i], less);
  }
}

void Root(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats, Vector v) { return hn::Sqrt(v); });
}
void InverseRoot(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(v)); });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Power);
HWY_EXPORT(PowerGrad);
HWY_EXPORT(Root);
HWY_EXPORT(InverseRoot);

void Power(float exponent, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Power)(exponent, x, y, count);
}
void PowerGrad(float exponent, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(PowerGrad)(exponent, x, dy, dx, count);
}
void Root(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Root)(x, y, count); }
void InverseRoot(const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(InverseRoot)(x, y, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
