#include "executor/collective/group/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "framework/tensor/bfloat16.h"
#include "framework/tensor/half.h"

namespace penstock::collective {
namespace {

// The elements reduced at a time; they stay in the first-level cache.
constexpr std::size_t kTile = 1024;

// How a type is stored, and in which type it is added.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum Load(Stored value) { return value; }
  static Stored Store(Sum value) { return value; }
};
struct AsHalf {
  using Stored = Half;
  using Sum = float;
  static Sum Load(Stored value) { return FloatOf(value); }
  static Stored Store(Sum value) { return HalfOf(value); }
};
struct AsBFloat16 {
  using Stored = BFloat16;
  using Sum = float;
  static Sum Load(Stored value) { return FloatOf(value); }
  static Stored Store(Sum value) { return BFloat16Of(value); }
};

struct Add {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b)));
    } else {
      return a + b;
    }
  }
};
struct Multiply {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct Larger {
  template <typename T>
  static T Of(T a, T b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Smaller {
  template <typename T>
  static T Of(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

// Divides the sum by `divisor` unless that is 0. `out` may be one of `sources`: each tile is written after it
// has been read from all sources.
template <typename Type, typename Op>
void ReduceAs(std::span<const std::byte* const> sources, std::size_t count, std::size_t divisor,
              std::byte* out, std::byte* copy) {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;
  // Two sources of the type of the sums are read once, so the sums go straight into the result.
  constexpr bool kSameType = std::is_same_v<Stored, Sum>;
  const bool in_result = kSameType && sources.size() <= 2;
  alignas(64) Sum scratch[kTile];
  for (std::size_t begin = 0; begin < count; begin += kTile) {
    const std::size_t n = std::min(kTile, count - begin);
    const auto of = [&](std::size_t rank) { return reinterpret_cast<const Stored*>(sources[rank]) + begin; };
    auto* const to = reinterpret_cast<Stored*>(out) + begin;
    Sum* sum = scratch;
    if constexpr (kSameType) {
      if (in_result) sum = to;
    }
    const Stored* x = of(0);
    const Stored* y = of(std::min<std::size_t>(1, sources.size() - 1));
    if (sources.size() == 1) {
      for (std::size_t i = 0; i < n; ++i) sum[i] = Type::Load(x[i]);
    } else {
      for (std::size_t i = 0; i < n; ++i) sum[i] = Op::Of(Type::Load(x[i]), Type::Load(y[i]));
    }
    for (std::size_t rank = 2; rank < sources.size(); ++rank) {
      y = of(rank);
      for (std::size_t i = 0; i < n; ++i) sum[i] = Op::Of(sum[i], Type::Load(y[i]));
    }
    if constexpr (std::is_floating_point_v<Sum>) {
      if (divisor > 0) {
        for (std::size_t i = 0; i < n; ++i) sum[i] /= static_cast<Sum>(divisor);
      }
    }
    if (!in_result) {
      for (std::size_t i = 0; i < n; ++i) to[i] = Type::Store(sum[i]);
    }
    if (copy != nullptr) std::memcpy(copy + begin * sizeof(Stored), to, n * sizeof(Stored));
  }
}

template <typename Type>
void ReduceBy(Reduction reduction, std::span<const std::byte* const> sources, std::size_t count,
              std::byte* out, std::size_t divisor, std::byte* copy) {
  switch (reduction) {
    case Reduction::kSum:
      return ReduceAs<Type, Add>(sources, count, 0, out, copy);
    case Reduction::kMean:
      return ReduceAs<Type, Add>(sources, count, divisor, out, copy);
    case Reduction::kProduct:
      return ReduceAs<Type, Multiply>(sources, count, 0, out, copy);
    case Reduction::kMax:
      return ReduceAs<Type, Larger>(sources, count, 0, out, copy);
    case Reduction::kMin:
      return ReduceAs<Type, Smaller>(sources, count, 0, out, copy);
  }
}

}  // namespace

void ReduceInOrder(ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
                   std::size_t count, std::byte* out, std::size_t divisor, std::byte* copy) {
  if (divisor == 0) divisor = sources.size();
  switch (type) {
    case ElementType::kFp16:
      return ReduceBy<AsHalf>(reduction, sources, count, out, divisor, copy);
    case ElementType::kBf16:
      return ReduceBy<AsBFloat16>(reduction, sources, count, out, divisor, copy);
    case ElementType::kFp32:
      return ReduceBy<Plain<float>>(reduction, sources, count, out, divisor, copy);
    case ElementType::kFp64:
      return ReduceBy<Plain<double>>(reduction, sources, count, out, divisor, copy);
    case ElementType::kInt32:
      return ReduceBy<Plain<std::int32_t>>(reduction, sources, count, out, divisor, copy);
    case ElementType::kInt64:
      return ReduceBy<Plain<std::int64_t>>(reduction, sources, count, out, divisor, copy);
    case ElementType::kUInt8:
      return ReduceBy<Plain<std::uint8_t>>(reduction, sources, count, out, divisor, copy);
    case ElementType::kInt8:
      return ReduceBy<Plain<std::int8_t>>(reduction, sources, count, out, divisor, copy);
  }
}

}  // namespace penstock::collective
