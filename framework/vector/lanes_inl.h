// Loops over arrays of floats by vectors, for the files of this folder. Compiled once per instruction set: a
// file includes it after <hwy/foreach_target.h>.
//
//   EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {           // elements [i, i + n)
//     Store(d, hn::Mul(Load(d, x + i, n), scale), y + i, n);
//   });
//
// Sums have one order of additions on every instruction set: element i is added to lane i % 32, and lane i
// and lane i + 16, i + 8 ... are added at the end.
#if defined(PENSTOCK_VECTOR_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_VECTOR_LANES_INL_H_
#undef PENSTOCK_VECTOR_LANES_INL_H_
#else
#define PENSTOCK_VECTOR_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;
inline constexpr std::size_t kWidth = hn::MaxLanes(Floats());  // 1 (base), 4, 8 or 16
inline constexpr std::size_t kLanes = 32;                      // of a sum
inline constexpr std::size_t kParts = kLanes / kWidth;         // vectors of a sum

// The first n elements at p; the others of the vector are `rest`. Reads no others.
template <class D>
HWY_INLINE hn::Vec<D> Load(D d, const float* p, std::size_t n, float rest = 0) {
  constexpr std::size_t kAll = hn::MaxLanes(D());
  if (HWY_LIKELY(n >= kAll)) return hn::LoadU(d, p);
#if HWY_TARGET <= HWY_AVX2
  const auto first = hn::FirstN(d, n);
  return hn::IfThenElse(first, hn::MaskedLoad(first, d, p), hn::Set(d, rest));
#else
  HWY_ALIGN float all[kAll];
  std::fill(all, all + kAll, rest);
  std::memcpy(all, p, n * sizeof(float));
  return hn::Load(d, all);
#endif
}

// Writes the first n elements of v, and no others.
template <class D>
HWY_INLINE void Store(D d, hn::Vec<D> v, float* p, std::size_t n) {
  constexpr std::size_t kAll = hn::MaxLanes(D());
  if (HWY_LIKELY(n >= kAll)) return hn::StoreU(v, d, p);
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN float all[kAll];
  hn::Store(v, d, all);
  std::memcpy(p, all, n * sizeof(float));
#endif
}

// Calls step(d, i, n) for each vector of elements [i, i + n), n = its lanes but for the last.
template <class D, typename Step>
HWY_INLINE void EachVectorOf(D d, std::size_t count, Step step) {
  constexpr std::size_t kAll = hn::MaxLanes(D());
  std::size_t i = 0;
  for (; i + kAll <= count; i += kAll) step(d, i, kAll);
  if (i < count) step(d, i, count - i);
}
template <typename Step>
HWY_INLINE void EachVector(std::size_t count, Step step) {
  EachVectorOf(Floats(), count, step);
}

// y[i] = function(d, x[i]) and dx[i] = function(d, x[i], dy[i]), by vectors
template <typename Function>
HWY_INLINE void Map(const float* x, float* y, std::size_t count, Function function) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, function(d, Load(d, x + i, n)), y + i, n);
  });
}
template <typename Function>
HWY_INLINE void Map(const float* x, const float* dy, float* dx, std::size_t count, Function function) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, function(d, Load(d, x + i, n), Load(d, dy + i, n)), dx + i, n);
  });
}

// Calls step(d, i, n, part) for each vector: its elements belong to lanes [part * kWidth, (part + 1) *
// kWidth).
template <typename Step>
HWY_INLINE void EachPart(std::size_t count, Step step) {
  const Floats d;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma GCC unroll 8
    for (std::size_t part = 0; part < kParts; ++part) step(d, i + part * kWidth, kWidth, part);
  }
#pragma GCC unroll 8  // so that lanes stay in registers
  for (std::size_t part = 0; part < kParts; ++part, i += kWidth) {
    if (i >= count) break;
    step(d, i, std::min(kWidth, count - i), part);
  }
}

// A value for each of kLanes lanes.
struct Lanes {
  // Not implicit: such constructors would be compiled without the instruction set.
  HWY_INLINE Lanes() {}
  HWY_INLINE explicit Lanes(float value) {
#pragma GCC unroll 8
    for (Vector& part : parts) part = hn::Set(Floats(), value);
  }
  Vector parts[kParts];
};

// fold(lane i, lane i + width / 2), until one lane is left.
template <class D, typename Fold>
HWY_INLINE float FoldVector(D, hn::Vec<D> v, [[maybe_unused]] Fold fold) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#else
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return FoldVector(half, fold(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), fold);
  } else {
    v = fold(v, hn::Shuffle1032(v));
    return hn::GetLane(fold(v, hn::Shuffle2301(v)));
  }
#endif
}
template <typename Fold>
HWY_INLINE float FoldLanes(const Lanes& lanes, Fold fold) {
  Lanes all = lanes;
#pragma GCC unroll 4
  for (std::size_t width = kParts / 2; width > 0; width /= 2) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < width; ++part)
      all.parts[part] = fold(all.parts[part], all.parts[part + width]);
  }
  return FoldVector(Floats(), all.parts[0], fold);
}

HWY_INLINE float Sum(const Lanes& lanes) {
  return FoldLanes(lanes, [](auto a, auto b) { return hn::Add(a, b); });
}
// Without an order among equal numbers, so alike on every instruction set. NaN may be lost.
HWY_INLINE float Largest(const Lanes& lanes) {
  return FoldLanes(lanes, [](auto a, auto b) { return hn::Max(a, b); });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_VECTOR_LANES_INL_H_
