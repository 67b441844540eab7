#include "framework/vector/softmax.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/softmax.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

constexpr float kLeastScore = -64;

HWY_INLINE Vector Score(Floats d, Vector x, Vector largest) {
  const Vector score = hn::Sub(x, largest), least = hn::Set(d, kLeastScore);
  return hn::IfThenElse(hn::Lt(score, least), least, score);  // NaN stays
}

HWY_INLINE float LargestOf(const float* x, std::size_t count) {
  Lanes largest(-std::numeric_limits<float>::infinity());
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    largest.parts[part] = hn::Max(largest.parts[part], Load(d, x + i, n, x[i]));
  });
  return Largest(largest);
}

HWY_INLINE float ExpAndSum(const float* x, float* y, std::size_t count, float largest) {
  Lanes sum(0);
  const Vector peak = hn::Set(Floats(), largest);
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    const Vector e = Exp(d, Score(d, Load(d, x + i, n), peak));
    Store(d, e, y + i, n);
    sum.parts[part] = hn::Add(sum.parts[part], n < kWidth ? hn::IfThenElseZero(hn::FirstN(d, n), e) : e);
  });
  return Sum(sum);
}

void Softmax(const float* x, float* y, std::size_t rows, std::size_t count, RowScale* scales) {
  for (std::size_t row = 0; row < rows; ++row, x += count, y += count) {
    const float largest = LargestOf(x, count);
    const float sum = ExpAndSum(x, y, count, largest);
    if (scales != nullptr) scales[row] = {largest, std::log(sum)};
    const Vector share = hn::Set(Floats(), 1 / sum);
    EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
      Store(d, hn::Mul(Load(d, y + i, n), share), y + i, n);
    });
  }
}

void SoftmaxGrad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t count) {
  for (std::size_t row = 0; row < rows; ++row, y += count, dy += count, dx += count) {
    Lanes sum(0);
    EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      sum.parts[part] = hn::MulAdd(Load(d, dy + i, n), Load(d, y + i, n), sum.parts[part]);
    });
    const Vector total = hn::Set(Floats(), Sum(sum));
    EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
      Store(d, hn::Mul(Load(d, y + i, n), hn::Sub(Load(d, dy + i, n), total)), dx + i, n);
    });
  }
}

// The sum of term(i) of all i, in four lanes.
template <typename Term>
HWY_INLINE Vector SumInFour(std::size_t count, Term term) {
  const Floats d;
  Vector sums[4];
#pragma GCC unroll 4
  for (Vector& sum : sums) sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
#pragma GCC unroll 4
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] = hn::Add(sums[lane], term(i + lane));
  }
  for (; i < count; ++i) sums[0] = hn::Add(sums[0], term(i));
  return hn::Add(hn::Add(sums[0], sums[2]), hn::Add(sums[1], sums[3]));
}

void SoftmaxOfColumns(const float* x, float* y, std::size_t count, std::size_t stride, std::size_t columns) {
  EachVector(columns, [=](Floats d, std::size_t j, std::size_t n) {
    Vector largest = Load(d, x + j, n);
    for (std::size_t i = 1; i < count; ++i) largest = hn::Max(largest, Load(d, x + i * stride + j, n));
    const Vector sum = SumInFour(count, [=](std::size_t i) {
      const Vector e = Exp(d, Score(d, Load(d, x + i * stride + j, n), largest));
      Store(d, e, y + i * stride + j, n);
      return e;
    });
    const Vector share = hn::Div(hn::Set(d, 1.0f), sum);
    for (float* to = y + j; to != y + j + count * stride; to += stride)
      Store(d, hn::Mul(Load(d, to, n), share), to, n);
  });
}
void SoftmaxGradOfColumns(const float* y, const float* dy, float* dx, std::size_t count, std::size_t stride,
                          std::size_t columns) {
  EachVector(columns, [=](Floats d, std::size_t j, std::size_t n) {
    const Vector along = SumInFour(count, [=](std::size_t i) {
      return hn::Mul(Load(d, dy + i * stride + j, n), Load(d, y + i * stride + j, n));
    });
    for (std::size_t at = j; at != j + count * stride; at += stride)
      Store(d, hn::Mul(Load(d, y + at, n), hn::Sub(Load(d, dy + at, n), along)), dx + at, n);
  });
}

void SoftCrossEntropy(const float* x, const float* share, const RowScale* scales, float* loss,
                      std::size_t rows, std::size_t count) {
  for (std::size_t row = 0; row < rows; ++row, x += count, share += count) {
    Lanes sum(0);
    const Vector largest = hn::Set(Floats(), scales[row].largest);
    const Vector log_sum = hn::Set(Floats(), scales[row].log_sum);
    EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      const Vector cost = hn::Sub(log_sum, Score(d, Load(d, x + i, n), largest));
      sum.parts[part] = hn::MulAdd(Load(d, share + i, n), cost, sum.parts[part]);
    });
    loss[row] = Sum(sum);
  }
}

void CrossEntropyOfShares(const float* p, const float* share, float* loss, std::size_t rows,
                          std::size_t count) {
  constexpr float kBound = 1e20f;
  for (std::size_t row = 0; row < rows; ++row, p += count, share += count) {
    Lanes sum(0);
    EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      const Vector least = hn::Set(d, -kBound), most = hn::Set(d, kBound);
      Vector log = Log(d, Load(d, p + i, n, 1.0f));
      log = hn::IfThenElse(hn::Lt(log, least), least, log);  // NaN stays
      log = hn::IfThenElse(hn::Gt(log, most), most, log);
      sum.parts[part] = hn::MulAdd(Load(d, share + i, n), log, sum.parts[part]);
    });
    loss[row] = -Sum(sum);
  }
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxGrad);
HWY_EXPORT(SoftmaxOfColumns);
HWY_EXPORT(SoftmaxGradOfColumns);
HWY_EXPORT(SoftCrossEntropy);
HWY_EXPORT(CrossEntropyOfShares);

void Softmax(const float* x, float* y, std::size_t rows, std::size_t count, RowScale* scales) {
  HWY_DYNAMIC_DISPATCH(Softmax)(x, y, rows, count, scales);
}
void SoftmaxGrad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGrad)(y, dy, dx, rows, count);
}
void SoftmaxOfColumns(const float* x, float* y, std::size_t count, std::size_t stride, std::size_t columns) {
  HWY_DYNAMIC_DISPATCH(SoftmaxOfColumns)(x, y, count, stride, columns);
}
void SoftmaxGradOfColumns(const float* y, const float* dy, float* dx, std::size_t count, std::size_t stride,
                          std::size_t columns) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradOfColumns)(y, dy, dx, count, stride, columns);
}
void SoftCrossEntropy(const float* x, const float* share, const RowScale* scales, float* loss,
                      std::size_t rows, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(SoftCrossEntropy)(x, share, scales, loss, rows, count);
}
void CrossEntropyOfShares(const float* p, const float* share, float* loss, std::size_t rows,
                          std::size_t count) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyOfShares)(p, share, loss, rows, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
