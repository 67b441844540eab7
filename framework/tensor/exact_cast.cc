#include "framework/tensor/exact_cast.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "framework/base/strings.h"
#include "framework/tensor/half.h"

namespace penstock {
namespace {

// A bool as numpy stores it: a byte. Other values than 0 and 1 mean true.
struct BoolByte {
  std::uint8_t byte;
};

template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

// The next shorter number toward 0 with its last bit set if it is not exact, so that rounding once more gives
// the same as rounding `value` directly.
template <typename From>
float RoundedToOdd(From value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<From>(nearest) == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<From>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

// `value` has at most `digits` binary digits between its first and last 1.
template <typename From>
bool FitsDigits(From value, int digits) {
  using Unsigned = std::make_unsigned_t<From>;
  const auto size = static_cast<Unsigned>(value < 0 ? Unsigned{0} - static_cast<Unsigned>(value)
                                                    : static_cast<Unsigned>(value));
  return size == 0 || static_cast<int>(std::bit_width(size)) - std::countr_zero(size) <= digits;
}

template <typename To, typename From>
bool FloatToInteger(From value, To& out) {
  // Both bounds are powers of two (or 0), so they are exact in each float type.
  constexpr auto kBelow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr auto kAbove = static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2;
  const bool inside = value >= kBelow && value < kAbove;  // false for NaN
  out = static_cast<To>(inside ? value : From{0});
  return inside & (static_cast<From>(out) == value);
}

// Whether `out` holds `value`, which is then written to it. Without branches, for the compiler to vectorize.
template <typename From, typename To>
bool Cast(From value, To& out) {
  if constexpr (std::is_same_v<From, Half>) {
    return Cast(FloatOf(value), out);
  } else if constexpr (std::is_same_v<From, BoolByte>) {
    const int one = value.byte != 0 ? 1 : 0;
    if constexpr (std::is_same_v<To, Half>) {
      out = HalfOf(static_cast<float>(one));
    } else {
      out = static_cast<To>(one);
    }
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    out = value != From{0};
    return value == From{0} || value == From{1};
  } else if constexpr (std::is_same_v<To, Half>) {
    if constexpr (std::is_integral_v<From>) {
      out = HalfOf(static_cast<float>(value));
      return FitsDigits(value, 11) && std::cmp_less_equal(value, 65504) &&
             std::cmp_greater_equal(value, -65504);
    } else {
      out = HalfOf(RoundedToOdd(value));
      return (out.bits & 0x7fffU) != 0x7c00U || std::isinf(value);
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
    out = static_cast<To>(value);
    if constexpr (sizeof(To) >= sizeof(From)) return true;
    return (std::abs(out) <= std::numeric_limits<To>::max()) |
           !(std::abs(value) <= std::numeric_limits<From>::max());
  } else if constexpr (std::is_floating_point_v<From>) {
    return FloatToInteger(value, out);
  } else if constexpr (std::is_floating_point_v<To>) {
    out = static_cast<To>(value);
    return FitsDigits(value, std::numeric_limits<To>::digits);
  } else {
    out = static_cast<To>(value);
    return std::in_range<To>(value);
  }
}

// Integers between -2^digits and 2^digits are exact in a float type of `digits` digits. A block of such
// numbers is converted without counting the digits of each.
template <typename From, typename To>
bool CastSmallIntegers(const From* in, To* out, std::size_t count) {
  constexpr int kDigits = std::numeric_limits<To>::digits;
  unsigned large = 0;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<To>(in[i]);
    if constexpr (std::numeric_limits<From>::digits > kDigits) {
      constexpr From kLimit = From{1} << kDigits;
      large |= static_cast<unsigned>(in[i] > kLimit);
      if constexpr (std::is_signed_v<From>) large |= static_cast<unsigned>(in[i] < -kLimit);
    }
  }
  return large == 0;
}

template <typename From, typename To>
bool CastBlock(const From* in, To* out, std::size_t count) {
  if constexpr (std::is_integral_v<From> && std::is_floating_point_v<To>) {
    if (CastSmallIntegers(in, out, count)) return true;
  }
  unsigned bad = 0;
  for (std::size_t i = 0; i < count; ++i) bad |= static_cast<unsigned>(!Cast(in[i], out[i]));
  return bad == 0;
}

template <typename From>
std::string TextOf(From value) {
  if constexpr (std::is_same_v<From, Half>) {
    return TextOf(FloatOf(value));
  } else if constexpr (std::is_same_v<From, BoolByte>) {
    return value.byte != 0 ? "True" : "False";
  } else {
    char text[64];
    return {text, std::to_chars(text, text + sizeof(text), value).ptr};
  }
}

template <typename From, typename To>
std::string WhyNot(From value) {
  const std::string_view name = DTypeName(DTypeOfT<To>::kValue);
  if constexpr (std::is_same_v<From, Half>) {
    return WhyNot<float, To>(FloatOf(value));
  } else if constexpr (std::is_same_v<From, BoolByte>) {
    return {};
  } else if constexpr (std::is_same_v<To, bool>) {
    return "is neither 0 nor 1";
  } else if constexpr (kIsFloat<To> && std::is_floating_point_v<From>) {
    return StrCat("is beyond the range of ", name);
  } else if constexpr (kIsFloat<To>) {
    return StrCat("is not exact in ", name);
  } else {
    if constexpr (std::is_floating_point_v<From>) {
      if (!std::isfinite(value) || std::trunc(value) != value)
        return StrCat("is not an integer, as ", name, " needs");
    }
    using Limits = std::numeric_limits<To>;
    return StrCat("is outside the range of ", name, ", ", std::int64_t{Limits::min()}, " to ",
                  std::int64_t{Limits::max()});
  }
}

template <typename From, typename To>
std::optional<Misfit> CastAll(const void* in, std::size_t count, void* out) {
  constexpr std::size_t kBlock = 1024;  // stays in the nearest cache, should it be read again
  const auto* from = static_cast<const From*>(in);
  auto* to = static_cast<To*>(out);
  std::size_t begin = 0;
  bool whole = true;
  for (; whole && begin + kBlock <= count; begin += whole ? kBlock : 0) {
    whole = CastBlock(from + begin, to + begin, kBlock);
  }
  if (whole && CastBlock(from + begin, to + begin, count - begin)) return std::nullopt;
  while (Cast(from[begin], to[begin])) ++begin;
  return Misfit{begin, TextOf(from[begin]), WhyNot<From, To>(from[begin])};
}

template <typename From>
std::optional<Misfit> CastFrom(const void* in, std::size_t count, DType to, void* out) {
  switch (to) {
    case DType::kBool:
      return CastAll<From, bool>(in, count, out);
    case DType::kInt16:
      return CastAll<From, std::int16_t>(in, count, out);
    case DType::kInt32:
      return CastAll<From, std::int32_t>(in, count, out);
    case DType::kInt64:
    case DType::kSizeT:
      return CastAll<From, std::int64_t>(in, count, out);
    case DType::kFp16:
      return CastAll<From, Half>(in, count, out);
    case DType::kFp32:
      return CastAll<From, float>(in, count, out);
    case DType::kFp64:
      return CastAll<From, double>(in, count, out);
    case DType::kUInt8:
      return CastAll<From, std::uint8_t>(in, count, out);
    case DType::kInt8:
      return CastAll<From, std::int8_t>(in, count, out);
  }
  return std::nullopt;
}

using CastFunction = std::optional<Misfit> (*)(const void*, std::size_t, DType, void*);

CastFunction FunctionFor(NumberType from) {
  switch (from.kind) {
    case NumberKind::kBool:
      return from.bytes == 1 ? CastFrom<BoolByte> : nullptr;
    case NumberKind::kSigned:
      return from.bytes == 1   ? CastFrom<std::int8_t>
             : from.bytes == 2 ? CastFrom<std::int16_t>
             : from.bytes == 4 ? CastFrom<std::int32_t>
             : from.bytes == 8 ? CastFrom<std::int64_t>
                               : nullptr;
    case NumberKind::kUnsigned:
      return from.bytes == 1   ? CastFrom<std::uint8_t>
             : from.bytes == 2 ? CastFrom<std::uint16_t>
             : from.bytes == 4 ? CastFrom<std::uint32_t>
             : from.bytes == 8 ? CastFrom<std::uint64_t>
                               : nullptr;
    case NumberKind::kFloat:
      return from.bytes == 2                     ? CastFrom<Half>
             : from.bytes == 4                   ? CastFrom<float>
             : from.bytes == 8                   ? CastFrom<double>
             : from.bytes == sizeof(long double) ? CastFrom<long double>
                                                 : nullptr;
  }
  return nullptr;
}

}  // namespace

bool IsCastable(NumberType from) { return FunctionFor(from) != nullptr; }

std::optional<Misfit> CastNumbers(NumberType from, const void* in, std::size_t count, DType to, void* out) {
  return FunctionFor(from)(in, count, to, out);
}

}  // namespace penstock
