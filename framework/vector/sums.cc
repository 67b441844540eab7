#include "framework/vector/sums.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/sums.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/doubles_inl.h"
#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// What is added for an element.
struct Itself {
  HWY_INLINE Double operator()(Double x) const { return x; }
  double operator()(double x) const { return x; }
};
struct Square {
  HWY_INLINE Double operator()(Double x) const { return hn::Mul(x, x); }
  double operator()(double x) const { return x * x; }
};

template <typename Term>
HWY_INLINE double SumOf(const float* x, std::size_t count, Term term) {
  constexpr std::size_t kVectors = kLanes / kDoubles;
  const Doubles d;
  Double sums[kVectors];
#pragma GCC unroll 32
  for (Double& sum : sums) sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma GCC unroll 32
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(sums[v], term(Widened(x + i + v * kDoubles)));
  }
#pragma GCC unroll 32  // so that sums stay in registers
  for (std::size_t v = 0; v < kVectors; ++v, i += kDoubles) {
    if (i >= count) break;
    const Double rest = Widened(Load(Narrow(), x + i, std::min(kDoubles, count - i)));
    sums[v] = hn::Add(sums[v], term(rest));  // + 0 beyond the end
  }
#pragma GCC unroll 8
  for (std::size_t width = kVectors / 2; width > 0; width /= 2) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < width; ++v) sums[v] = hn::Add(sums[v], sums[v + width]);
  }
  HWY_ALIGN double lanes[kDoubles];
  hn::Store(sums[0], d, lanes);
  for (std::size_t width = kDoubles / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

double SumOfArray(const float* x, std::size_t count) { return SumOf(x, count, Itself()); }
double SumOfSquares(const float* x, std::size_t count) { return SumOf(x, count, Square()); }

// Adds the terms of `rows` rows to sums of kVectors vectors of columns, which stay in registers.
template <std::size_t kVectors, typename Term>
HWY_INLINE void AddColumns(const float* x, std::size_t stride, std::size_t rows, double* sums, Term term) {
  const Doubles d;
  Double all[kVectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) all[v] = hn::LoadU(d, sums + v * kDoubles);
  for (std::size_t row = 0; row < rows; ++row, x += stride) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) all[v] = hn::Add(all[v], term(Widened(x + v * kDoubles)));
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(all[v], d, sums + v * kDoubles);
}
// Several rows are read while sums are in registers, but no more than stay in a cache with their pages.
template <typename Term>
HWY_INLINE void AddRowsOf(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                          double* sums, Term term) {
  constexpr std::size_t kTogether = 16, kVectors = 8, kColumns = kVectors * kDoubles;
  for (std::size_t first = 0; first < rows; first += kTogether, x += kTogether * stride) {
    const std::size_t together = std::min(kTogether, rows - first);
    std::size_t j = 0;
    for (; j + kColumns <= columns; j += kColumns)
      AddColumns<kVectors>(x + j, stride, together, sums + j, term);
    for (; j + kDoubles <= columns; j += kDoubles) AddColumns<1>(x + j, stride, together, sums + j, term);
    for (; j < columns; ++j) {
      for (std::size_t row = 0; row < together; ++row)
        sums[j] += term(static_cast<double>(x[row * stride + j]));
    }
  }
}

void AddRowsInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                     double* sums) {
  AddRowsOf(x, stride, rows, columns, sums, Itself());
}
void AddSquaresInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                        double* sums) {
  AddRowsOf(x, stride, rows, columns, sums, Square());
}

// A NaN wins: it is taken, and no comparison with it holds. Of equal numbers the one so far stays. On x86,
// Max(a, b) is a if a > b, and b elsewhere, also for NaN.
struct Larger {
  template <class V>
  HWY_INLINE V operator()(V so_far, V x) const {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, so_far));
#else
    return hn::IfThenElse(hn::Or(hn::Gt(x, so_far), hn::IsNaN(x)), x, so_far);
#endif
  }
};
struct Smaller {
  template <class V>
  HWY_INLINE V operator()(V so_far, V x) const {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(x, so_far));
#else
    return hn::IfThenElse(hn::Or(hn::Lt(x, so_far), hn::IsNaN(x)), x, so_far);
#endif
  }
};

// One of four vectors, `step` elements apart. Choices are associative: of several NaN the last one is taken,
// of equal numbers the first. Hence most need not wait for the choice so far.
template <typename Choice>
HWY_INLINE Vector ChosenOfFour(const float* x, std::size_t step, Choice choice) {
  const Floats d;
  const Vector first = choice(hn::LoadU(d, x), hn::LoadU(d, x + step));
  return choice(first, choice(hn::LoadU(d, x + 2 * step), hn::LoadU(d, x + 3 * step)));
}

// `outside` changes nothing.
template <typename Choice>
HWY_INLINE float ChosenOf(const float* x, std::size_t count, float outside, Choice choice) {
  Lanes lanes(outside);
  for (; count >= 4 * kLanes; x += 4 * kLanes, count -= 4 * kLanes) {
#pragma GCC unroll 8
    for (std::size_t part = 0; part < kParts; ++part)
      lanes.parts[part] = choice(lanes.parts[part], ChosenOfFour(x + part * kWidth, kLanes, choice));
  }
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    lanes.parts[part] = choice(lanes.parts[part], Load(d, x + i, n, outside));
  });
  return FoldLanes(lanes, [choice](auto so_far, auto x) { return choice(so_far, x); });
}

template <typename Choice>
HWY_INLINE void ChosenOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                             float* chosen, Choice choice) {
  constexpr std::size_t kTogether = 16;
  for (std::size_t first = 0; first < rows; first += kTogether) {
    const std::size_t end = std::min(rows, first + kTogether);
    EachVector(columns, [&](Floats d, std::size_t j, std::size_t n) {
      Vector so_far = Load(d, chosen + j, n);
      std::size_t row = first;
      for (; n == kWidth && row + 4 <= end; row += 4)
        so_far = choice(so_far, ChosenOfFour(x + row * stride + j, stride, choice));
      for (; row < end; ++row) so_far = choice(so_far, Load(d, x + row * stride + j, n));
      Store(d, so_far, chosen + j, n);
    });
  }
}

constexpr float kEndless = std::numeric_limits<float>::infinity();

float LargestOfArray(const float* x, std::size_t count) { return ChosenOf(x, count, -kEndless, Larger()); }
float SmallestOfArray(const float* x, std::size_t count) { return ChosenOf(x, count, kEndless, Smaller()); }
void LargestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                   float* largest) {
  ChosenOfRows(x, stride, rows, columns, largest, Larger());
}
void SmallestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                    float* smallest) {
  ChosenOfRows(x, stride, rows, columns, smallest, Smaller());
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(SumOfArray);
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(LargestOfArray);
HWY_EXPORT(SmallestOfArray);
HWY_EXPORT(AddRowsInDouble);
HWY_EXPORT(AddSquaresInDouble);
HWY_EXPORT(LargestOfRows);
HWY_EXPORT(SmallestOfRows);

double Sum(const float* x, std::size_t count) { return HWY_DYNAMIC_DISPATCH(SumOfArray)(x, count); }
double SumOfSquares(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, count);
}
float Largest(const float* x, std::size_t count) { return HWY_DYNAMIC_DISPATCH(LargestOfArray)(x, count); }
float Smallest(const float* x, std::size_t count) { return HWY_DYNAMIC_DISPATCH(SmallestOfArray)(x, count); }

void AddRowsInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                     double* sums) {
  HWY_DYNAMIC_DISPATCH(AddRowsInDouble)(x, stride, rows, columns, sums);
}
void AddSquaresInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                        double* sums) {
  HWY_DYNAMIC_DISPATCH(AddSquaresInDouble)(x, stride, rows, columns, sums);
}
void LargestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                   float* largest) {
  HWY_DYNAMIC_DISPATCH(LargestOfRows)(x, stride, rows, columns, largest);
}
void SmallestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                    float* smallest) {
  HWY_DYNAMIC_DISPATCH(SmallestOfRows)(x, stride, rows, columns, smallest);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
