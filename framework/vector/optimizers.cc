#include "framework/vector/optimizers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/optimizers.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// A vector of each array: elements [at, at + size).
struct Lane {
  Floats d;
  std::size_t at, size;

  Vector Of(const float* from) const { return Load(d, from + at, size); }
  Vector Of(float value) const { return hn::Set(d, value); }
  void To(float* to, Vector v) const { Store(d, v, to + at, size); }
  // kept * from + added * values
  Vector Mixed(float kept, const float* from, float added, Vector values) const {
    return hn::Add(hn::Mul(Of(kept), Of(from)), hn::Mul(Of(added), values));
  }
  // kept * from + added * values * values, multiplied from left to right
  Vector MixedSquares(float kept, const float* from, float added, Vector values) const {
    return hn::Add(hn::Mul(Of(kept), Of(from)), hn::Mul(hn::Mul(Of(added), values), values));
  }
};

// Calls update(lane, gradient) for each vector.
template <typename Rule>
HWY_INLINE void Each(std::size_t begin, std::size_t count, const float* grad, Rule update) {
  if (grad == nullptr) {
    EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
      update(Lane{d, begin + i, n}, hn::Zero(d));
    });
  } else {
    EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
      update(Lane{d, begin + i, n}, Load(d, grad + i, n));
    });
  }
}

// Writes the moments and returns m1 / (sqrt(m2) + epsilon).
HWY_INLINE Vector Direction(const Lane& lane, const Moments& m, float epsilon, Vector g) {
  const Vector m1 = lane.Mixed(m.beta1, m.moment1, 1 - m.beta1, g);
  const Vector m2 = lane.MixedSquares(m.beta2, m.moment2, 1 - m.beta2, g);
  lane.To(m.moment1_out, m1);
  lane.To(m.moment2_out, m2);
  return hn::Div(m1, hn::Add(hn::Sqrt(m2), lane.Of(epsilon)));
}

void Adam(const AdamStep& step, std::size_t begin, std::size_t count, const float* grad) {
  const AdamStep s = step;
  Each(begin, count, grad, [&s](const Lane& lane, Vector g) {
    const Vector direction = Direction(lane, s.moments, s.epsilon, g);
    lane.To(s.param_out, hn::Sub(lane.Of(s.param), hn::Mul(lane.Of(s.rate), direction)));
  });
}

void AdamMissed(const AdamMissedSteps& steps, std::size_t count) {
  const AdamMissedSteps s = steps;
  EachVector(count, [&s](Floats d, std::size_t i, std::size_t n) {
    const Lane lane{d, i, n};
    const Vector m1 = lane.Of(s.moment1), m2 = lane.Of(s.moment2);
    const Vector divisor = hn::Add(hn::Sqrt(m2), lane.Of(s.epsilon));
    const Vector u = hn::Div(lane.Of(s.epsilon), divisor);
    Vector sum = lane.Of(s.sums[3]);
    for (int term = 2; term >= 0; --term) sum = hn::Sub(lane.Of(s.sums[term]), hn::Mul(u, sum));
    lane.To(s.param, hn::Sub(lane.Of(s.param), hn::Mul(hn::Div(m1, divisor), sum)));
    lane.To(s.moment1, hn::Mul(m1, lane.Of(s.kept1)));
    lane.To(s.moment2, hn::Mul(m2, lane.Of(s.kept2)));
  });
}

void Lamb(const LambStep& step, std::size_t begin, std::size_t count, const float* grad) {
  const LambStep s = step;
  Each(begin, count, grad, [&s](const Lane& lane, Vector g) {
    const Vector direction = Direction(lane, s.moments, s.epsilon, g);
    lane.To(s.step, hn::Add(direction, hn::Mul(lane.Of(s.decay), lane.Of(s.param))));
  });
}

void Adagrad(const AdagradStep& step, std::size_t begin, std::size_t count, const float* grad) {
  const AdagradStep s = step;
  Each(begin, count, grad, [&s](const Lane& lane, Vector g) {
    const Vector m = lane.MixedSquares(s.kept, s.moment, s.added, g);
    lane.To(s.moment_out, m);
    const Vector move = hn::Div(hn::Mul(lane.Of(s.rate), g), hn::Add(hn::Sqrt(m), lane.Of(s.epsilon)));
    lane.To(s.param_out, hn::Sub(lane.Of(s.param), move));
  });
}

void Rmsprop(const RmspropStep& step, std::size_t begin, std::size_t count, const float* grad) {
  const RmspropStep s = step;
  Each(begin, count, grad, [&s](const Lane& lane, Vector g) {
    Vector spread = lane.MixedSquares(s.decay, s.square, 1 - s.decay, g);
    lane.To(s.square_out, spread);
    if (s.mean != nullptr) {
      const Vector average = lane.Mixed(s.decay, s.mean, 1 - s.decay, g);
      lane.To(s.mean_out, average);
      spread = hn::Sub(spread, hn::Mul(average, average));
    }
    const Vector move = hn::Div(hn::Mul(lane.Of(s.rate), g), hn::Sqrt(hn::Add(spread, lane.Of(s.epsilon))));
    const Vector m = hn::Add(hn::Mul(lane.Of(s.momentum), lane.Of(s.moment)), move);
    lane.To(s.moment_out, m);
    lane.To(s.param_out, hn::Sub(lane.Of(s.param), m));
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Adam);
HWY_EXPORT(AdamMissed);
HWY_EXPORT(Lamb);
HWY_EXPORT(Adagrad);
HWY_EXPORT(Rmsprop);

void Update(const AdamStep& step, std::size_t begin, std::size_t count, const float* grad) {
  HWY_DYNAMIC_DISPATCH(Adam)(step, begin, count, grad);
}
void Update(const AdamMissedSteps& steps, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AdamMissed)(steps, count);
}
void Update(const LambStep& step, std::size_t begin, std::size_t count, const float* grad) {
  HWY_DYNAMIC_DISPATCH(Lamb)(step, begin, count, grad);
}
void Update(const AdagradStep& step, std::size_t begin, std::size_t count, const float* grad) {
  HWY_DYNAMIC_DISPATCH(Adagrad)(step, begin, count, grad);
}
void Update(const RmspropStep& step, std::size_t begin, std::size_t count, const float* grad) {
  HWY_DYNAMIC_DISPATCH(Rmsprop)(step, begin, count, grad);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
