#include "framework/vector/piecewise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/piecewise.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

HWY_INLINE Vector Clipped(Vector x, Vector least, Vector most) {
  const Vector raised = hn::IfThenElse(hn::Lt(x, least), least, x);  // NaN stays
  return hn::IfThenElse(hn::Gt(raised, most), most, raised);
}

void Relu(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats d, Vector v) { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
}
void LeakyRelu(float alpha, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [alpha](Floats d, Vector v) {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, hn::Set(d, alpha)));
  });
}
void Clip(float least, float most, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [=](Floats d, Vector v) { return Clipped(v, hn::Set(d, least), hn::Set(d, most)); });
}
void HardSigmoid(float slope, float offset, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [=](Floats d, Vector v) {
    const Vector line = hn::Add(hn::Mul(v, hn::Set(d, slope)), hn::Set(d, offset));
    return Clipped(line, hn::Zero(d), hn::Set(d, 1.0f));
  });
}
void HardSwish(float offset, float most, float scale, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [=](Floats d, Vector v) {
    const Vector ramp = Clipped(hn::Add(v, hn::Set(d, offset)), hn::Zero(d), hn::Set(d, most));
    return hn::Div(hn::Mul(v, ramp), hn::Set(d, scale));
  });
}
void SoftShrink(float distance, const float* x, float* y, std::size_t count) {
  Map(x, y, count, [distance](Floats d, Vector v) {
    const Vector top = hn::Set(d, distance), bottom = hn::Set(d, -distance);
    const Vector raised = hn::IfThenElseZero(hn::Lt(v, bottom), hn::Add(v, top));
    const Vector moved = hn::IfThenElse(hn::Gt(v, top), hn::Sub(v, top), raised);
    return hn::IfThenElse(hn::IsNaN(v), v, moved);
  });
}
// Not each of Highway's functions keeps the sign of zero.
void Floor(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats, Vector v) { return hn::CopySign(hn::Floor(v), v); });
}
void Ceil(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats, Vector v) { return hn::CopySign(hn::Ceil(v), v); });
}
void Round(const float* x, float* y, std::size_t count) {
  Map(x, y, count, [](Floats, Vector v) { return hn::CopySign(hn::Round(v), v); });
}

void AboveGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [bound](Floats d, Vector v, Vector dv) {
    const Vector taken = hn::IfThenElseZero(hn::Gt(v, hn::Set(d, bound)), dv);
    return hn::IfThenElse(hn::IsNaN(v), v, taken);
  });
}
void OutsideGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [bound](Floats d, Vector v, Vector dv) {
    const auto outside = hn::Or(hn::Gt(v, hn::Set(d, bound)), hn::Lt(v, hn::Set(d, -bound)));
    return hn::IfThenElse(hn::IsNaN(v), v, hn::IfThenElseZero(outside, dv));
  });
}
HWY_INLINE Vector WhereEqual(Vector x, Vector y, Vector dy) {
  const Vector nan = hn::IfThenElse(hn::IsNaN(x), x, y);
  return hn::IfThenElse(hn::IsNaN(nan), nan, hn::IfThenElseZero(hn::Eq(x, y), dy));
}
void EqualGradOfEach(const float* x, const float* y, const float* dy, float* dx, std::size_t count) {
  EachVector(count, [=](Floats d, std::size_t i, std::size_t n) {
    Store(d, WhereEqual(Load(d, x + i, n), Load(d, y + i, n), Load(d, dy + i, n)), dx + i, n);
  });
}
void EqualGradOfOne(const float* x, float y, float dy, float* dx, std::size_t count) {
  Map(x, dx, count, [=](Floats d, Vector v) { return WhereEqual(v, hn::Set(d, y), hn::Set(d, dy)); });
}
void AbsGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [](Floats d, Vector v, Vector dv) {
    const Vector zero = hn::Zero(d), negative = hn::IfThenElseZero(hn::Lt(v, zero), hn::Neg(dv));
    return hn::IfThenElse(hn::IsNaN(v), v, hn::IfThenElse(hn::Gt(v, zero), dv, negative));
  });
}
void LeakyReluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count) {
  Map(x, dy, dx, count, [alpha](Floats d, Vector v, Vector dv) {
    const Vector taken = hn::IfThenElse(hn::Gt(v, hn::Zero(d)), dv, hn::Mul(dv, hn::Set(d, alpha)));
    return hn::IfThenElse(hn::IsNaN(v), v, taken);
  });
}
float LeakyReluAlphaGrad(const float* x, const float* dy, std::size_t count) {
  Lanes lanes(0);
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    const Vector v = Load(d, x + i, n), product = hn::Mul(v, Load(d, dy + i, n));
    lanes.parts[part] = hn::Add(lanes.parts[part], hn::IfThenZeroElse(hn::Gt(v, hn::Zero(d)), product));
  });
  return Sum(lanes);
}
void BetweenGrad(float least, float most, float slope, const float* x, const float* dy, float* dx,
                 std::size_t count) {
  Map(x, dy, dx, count, [=](Floats d, Vector v, Vector dv) {
    const auto between = hn::And(hn::Gt(v, hn::Set(d, least)), hn::Lt(v, hn::Set(d, most)));
    const Vector taken = hn::IfThenElseZero(between, hn::Mul(dv, hn::Set(d, slope)));
    return hn::IfThenElse(hn::IsNaN(v), v, taken);
  });
}
void HardSwishGrad(float offset, float most, float scale, const float* x, const float* dy, float* dx,
                   std::size_t count) {
  Map(x, dy, dx, count, [=](Floats d, Vector v, Vector dv) {
    const Vector ramp = hn::Add(v, hn::Set(d, offset)), top = hn::Set(d, most);
    Vector slope = hn::IfThenElse(hn::Lt(ramp, top), hn::Add(v, ramp), top);
    slope = hn::IfThenElse(hn::IsNaN(ramp), ramp, slope);
    const Vector taken = hn::Div(hn::Mul(dv, slope), hn::Set(d, scale));
    return hn::IfThenZeroElse(hn::Le(ramp, hn::Zero(d)), taken);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Relu);
HWY_EXPORT(LeakyRelu);
HWY_EXPORT(Clip);
HWY_EXPORT(HardSigmoid);
HWY_EXPORT(HardSwish);
HWY_EXPORT(SoftShrink);
HWY_EXPORT(Floor);
HWY_EXPORT(Ceil);
HWY_EXPORT(Round);
HWY_EXPORT(AboveGrad);
HWY_EXPORT(OutsideGrad);
HWY_EXPORT(EqualGradOfEach);
HWY_EXPORT(EqualGradOfOne);
HWY_EXPORT(AbsGrad);
HWY_EXPORT(LeakyReluGrad);
HWY_EXPORT(LeakyReluAlphaGrad);
HWY_EXPORT(BetweenGrad);
HWY_EXPORT(HardSwishGrad);

void Relu(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Relu)(x, y, count); }
void LeakyRelu(float alpha, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(LeakyRelu)(alpha, x, y, count);
}
void Clip(float least, float most, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Clip)(least, most, x, y, count);
}
void HardSigmoid(float slope, float offset, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(HardSigmoid)(slope, offset, x, y, count);
}
void HardSwish(float offset, float most, float scale, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(HardSwish)(offset, most, scale, x, y, count);
}
void SoftShrink(float distance, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftShrink)(distance, x, y, count);
}
void Floor(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Floor)(x, y, count); }
void Ceil(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Ceil)(x, y, count); }
void Round(const float* x, float* y, std::size_t count) { HWY_DYNAMIC_DISPATCH(Round)(x, y, count); }

void AboveGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AboveGrad)(bound, x, dy, dx, count);
}
void OutsideGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(OutsideGrad)(bound, x, dy, dx, count);
}
void EqualGrad(const float* x, const float* y, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(EqualGradOfEach)(x, y, dy, dx, count);
}
void EqualGrad(const float* x, float y, float dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(EqualGradOfOne)(x, y, dy, dx, count);
}
void AbsGrad(const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AbsGrad)(x, dy, dx, count);
}
void LeakyReluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(LeakyReluGrad)(alpha, x, dy, dx, count);
}
float LeakyReluAlphaGrad(const float* x, const float* dy, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(LeakyReluAlphaGrad)(x, dy, count);
}
void BetweenGrad(float least, float most, float slope, const float* x, const float* dy, float* dx,
                 std::size_t count) {
  HWY_DYNAMIC_DISPATCH(BetweenGrad)(least, most, slope, x, dy, dx, count);
}
void HardSwishGrad(float offset, float most, float scale, const float* x, const float* dy, float* dx,
                   std::size_t count) {
  HWY_DYNAMIC_DISPATCH(HardSwishGrad)(offset, most, scale, x, dy, dx, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
