#include "framework/vector/dropout.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/dropout.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

constexpr std::uint64_t kModulus = 2147483647, kMultiplier = 48271;

#if HWY_TARGET == HWY_SCALAR

void Dropout(std::uint32_t state, float probability, float factor, const float* x, std::uint8_t* mask,
             float* y, std::size_t count) {
  std::uint64_t draw = state;
  for (std::size_t i = 0; i < count; ++i) {
    draw = draw * kMultiplier % kModulus;
    mask[i] = static_cast<float>(draw - 1) * 0x1p-31f < probability ? 0 : 1;
    y[i] = mask[i] != 0 ? x[i] * factor : 0;
  }
}
void DropoutGrad(const std::uint8_t* mask, float factor, const float* dy, float* dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = mask[i] != 0 ? dy[i] * factor : 0;
}

#else

using Bytes = hn::Rebind<std::uint8_t, Floats>;
using Words = hn::RebindToUnsigned<Floats>;
using Draws = hn::RepartitionToWide<Words>;
using Draw = hn::Vec<Draws>;

// draw * factor mod (2^31 - 1), all below 2^31 - 1 and above 0: 2^31 is 1.
HWY_INLINE Draw Next(Draws d, Draw draw, Draw factor) {
  const Draw modulus = hn::Set(d, kModulus);
  const Words words;
  Draw product = hn::MulEven(hn::BitCast(words, draw), hn::BitCast(words, factor));
  product = hn::Add(hn::And(product, modulus), hn::ShiftRight<31>(product));
  return hn::Add(hn::And(product, modulus), hn::ShiftRight<31>(product));
}

// The draws of a vector's elements: those of even ones and those of odd ones.
struct Pair {
  Draw even, odd;
};
HWY_INLINE Pair First(Draws d, std::uint32_t state, Draw* next) {
  HWY_ALIGN std::uint64_t even[hn::MaxLanes(Draws())], odd[hn::MaxLanes(Draws())];
  std::uint64_t draw = state, power = 1;
  for (std::size_t i = 0; i < kWidth; ++i) {
    draw = draw * kMultiplier % kModulus;
    power = power * kMultiplier % kModulus;
    std::uint64_t* const to = i % 2 == 0 ? even : odd;
    to[i / 2] = draw;
  }
  *next = hn::Set(d, power);
  return {hn::Load(d, even), hn::Load(d, odd)};
}

HWY_INLINE void StoreMask(hn::Vec<Bytes> bytes, std::uint8_t* to, std::size_t n) {
  const Bytes d;
  if (HWY_LIKELY(n >= kWidth)) return hn::StoreU(bytes, d, to);
  HWY_ALIGN std::uint8_t all[kWidth];
  hn::Store(bytes, d, all);
  std::copy_n(all, n, to);
}
HWY_INLINE hn::Vec<Bytes> LoadMask(const std::uint8_t* from, std::size_t n) {
  const Bytes d;
  if (HWY_LIKELY(n >= kWidth)) return hn::LoadU(d, from);
  HWY_ALIGN std::uint8_t all[kWidth] = {};
  std::copy_n(from, n, all);
  return hn::Load(d, all);
}

void Dropout(std::uint32_t state, float probability, float factor, const float* x, std::uint8_t* mask,
             float* y, std::size_t count) {
  const Draws draws;
  const hn::RebindToSigned<Floats> integers;
  Draw next;
  Pair pair = First(draws, state, &next);
  const Vector limit = hn::Set(Floats(), probability * 0x1p31f), scale = hn::Set(Floats(), factor);
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    const auto drawn = hn::BitCast(integers, hn::Or(pair.even, hn::ShiftLeft<32>(pair.odd)));
    const Vector number = hn::ConvertTo(d, hn::Sub(drawn, hn::Set(integers, 1)));
    const auto kept = hn::Not(hn::Lt(number, limit));
    const auto ones = hn::IfThenElseZero(hn::RebindMask(integers, kept), hn::Set(integers, 1));
    StoreMask(hn::DemoteTo(Bytes(), ones), mask + i, n);
    Store(d, hn::IfThenElseZero(kept, hn::Mul(Load(d, x + i, n), scale)), y + i, n);
    pair = {Next(draws, pair.even, next), Next(draws, pair.odd, next)};
  });
}

void DropoutGrad(const std::uint8_t* mask, float factor, const float* dy, float* dx, std::size_t count) {
  const hn::RebindToSigned<Floats> integers;
  const Vector scale = hn::Set(Floats(), factor);
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    const auto kept = hn::Ne(hn::PromoteTo(integers, LoadMask(mask + i, n)), hn::Zero(integers));
    Store(d, hn::IfThenElseZero(hn::RebindMask(d, kept), hn::Mul(Load(d, dy + i, n), scale)), dx + i, n);
  });
}

#endif

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(Dropout);
HWY_EXPORT(DropoutGrad);

void Dropout(std::uint32_t state, float probability, float factor, const float* x, std::uint8_t* mask,
             float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Dropout)(state, probability, factor, x, mask, y, count);
}
void DropoutGrad(const std::uint8_t* mask, float factor, const float* dy, float* dx, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(DropoutGrad)(mask, factor, dy, dx, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
