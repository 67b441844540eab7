#include "framework/vector/half.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/half.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using Signed = hn::RebindToSigned<Floats>;
using Halves = hn::Rebind<std::uint16_t, Floats>;

// The steps of HalfOf; below 2^31, comparisons as signed numbers are those of unsigned ones.
HWY_INLINE hn::Vec<Halves> HalfBits(Vector x) {
  const Words w;
  const Signed s;
  const auto word = [w](std::uint32_t value) { return hn::Set(w, value); };
  const auto from = [s](hn::Vec<Signed> size, std::int32_t bound) {
    return hn::RebindMask(Words(), hn::Gt(size, hn::Set(s, bound - 1)));
  };
  const auto bits = hn::BitCast(w, x);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), word(0x8000));
  const auto size = hn::And(bits, word(0x7fffffff));
  const auto as_signed = hn::BitCast(s, size);
  const auto odd = hn::And(hn::ShiftRight<13>(size), word(1));
  const auto rounded = hn::Add(hn::Add(hn::Sub(size, word(0x38000000)), word(0xfff)), odd);
  const auto raised = hn::Add(hn::BitCast(Floats(), size), hn::Set(Floats(), 0.5f));
  const auto subnormal = hn::Sub(hn::BitCast(w, raised), word(0x3f000000));
  auto half = hn::IfThenElse(from(as_signed, 0x38800000), hn::ShiftRight<13>(rounded), subnormal);
  half = hn::IfThenElse(from(as_signed, 0x477ff000), word(0x7c00), half);
  half = hn::IfThenElse(from(as_signed, 0x7f800001), word(0x7e00), half);
  return hn::DemoteTo(Halves(), hn::BitCast(s, hn::Or(sign, half)));
}

HWY_INLINE Vector FloatOfBits(hn::Vec<Halves> half) {
  const Words w;
  const Signed s;
  const auto word = [w](std::uint32_t value) { return hn::Set(w, value); };
  const auto bits = hn::PromoteTo(w, half);
  const auto size = hn::And(bits, word(0x7fff));
  const auto shifted = hn::ShiftLeft<13>(size);
  const auto subnormal =
      hn::BitCast(w, hn::Mul(hn::ConvertTo(Floats(), hn::BitCast(s, size)), hn::Set(Floats(), 0x1p-24f)));
  const auto above = [&](std::int32_t bound) {
    return hn::RebindMask(Words(), hn::Gt(hn::BitCast(s, size), hn::Set(s, bound)));
  };
  // From 0x7c00 on all bits of the exponent are set: infinity, or NaN.
  auto all = hn::IfThenElse(above(0x3ff), hn::Add(shifted, word(112u << 23)), subnormal);
  all = hn::IfThenElse(above(0x7bff), hn::Or(shifted, word(0x7f800000)), all);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, word(0x8000)));
  return hn::BitCast(Floats(), hn::Or(sign, all));
}

void ToHalves(const float* x, void* halves, std::size_t count) {
  auto* const bytes = static_cast<unsigned char*>(halves);
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    HWY_ALIGN std::uint16_t each[kWidth];
    hn::Store(HalfBits(Load(d, x + i, n)), Halves(), each);
    std::memcpy(bytes + 2 * i, each, 2 * n);
  });
}
void ToFloats(const void* halves, float* x, std::size_t count) {
  const auto* const bytes = static_cast<const unsigned char*>(halves);
  EachVector(count, [&](Floats, std::size_t i, std::size_t n) {
    HWY_ALIGN std::uint16_t each[kWidth] = {};
    std::memcpy(each, bytes + 2 * i, 2 * n);
    Store(Floats(), FloatOfBits(hn::Load(Halves(), each)), x + i, n);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(ToHalves);
HWY_EXPORT(ToFloats);

void HalvesOf(const float* x, void* halves, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ToHalves)(x, halves, count);
}
void FloatsOf(const void* halves, float* x, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ToFloats)(halves, x, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
