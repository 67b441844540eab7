// Loops over arrays of floats that compute in double precision and round once, for the files of this folder.
// Compiled once per instruction set, as lanes_inl.h.
//
//   MapInDoubles(x, y, count, [](Doubles d, Double v) { return hn::Div(hn::Set(d, 1.0), v); });
#if defined(PENSTOCK_VECTOR_DOUBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_VECTOR_DOUBLES_INL_H_
#undef PENSTOCK_VECTOR_DOUBLES_INL_H_
#else
#define PENSTOCK_VECTOR_DOUBLES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

using Doubles = hn::CappedTag<double, 8>;
using Double = hn::Vec<Doubles>;
using Narrow = hn::Rebind<float, Doubles>;  // as many floats
using NarrowVector = hn::Vec<Narrow>;
inline constexpr std::size_t kDoubles = hn::MaxLanes(Doubles());  // 1 (base), 2, 4 or 8

HWY_INLINE Double Widened(NarrowVector x) { return hn::PromoteTo(Doubles(), x); }
HWY_INLINE Double Widened(const float* x) { return Widened(hn::LoadU(Narrow(), x)); }
// Rounded to the nearest float; infinite if it is beyond the largest one.
HWY_INLINE NarrowVector Narrowed(Double x) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Narrow(), static_cast<float>(hn::GetLane(x)));  // DemoteTo gives the largest float
#else
  return hn::DemoteTo(Narrow(), x);
#endif
}

// y[i] = function(d, x[i])
template <typename Function>
HWY_INLINE void MapInDoubles(const float* x, float* y, std::size_t count, Function function) {
  EachVectorOf(Narrow(), count, [&](Narrow narrow, std::size_t i, std::size_t n) {
    Store(narrow, Narrowed(function(Doubles(), Widened(Load(narrow, x + i, n)))), y + i, n);
  });
}
// dx[i] = times(narrow, dy[i], function(d, x[i])), where `times` has floats
template <typename Function, typename Times>
HWY_INLINE void MapInDoubles(const float* x, const float* dy, float* dx, std::size_t count, Function function,
                             Times times) {
  EachVectorOf(Narrow(), count, [&](Narrow narrow, std::size_t i, std::size_t n) {
    const NarrowVector slope = Narrowed(function(Doubles(), Widened(Load(narrow, x + i, n))));
    Store(narrow, times(narrow, Load(narrow, dy + i, n), slope), dx + i, n);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_VECTOR_DOUBLES_INL_H_
