#include "executor/kvstore/cast.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/base/check.h"
#include "framework/tensor/half.h"

namespace penstock::kvstore {
namespace {

// Calls visit(T{}) for the type.
template <typename Visit>
void WithType(DType type, const Visit& visit) {
  switch (type) {
    case DType::kFp16:
      return visit(Half{});
    case DType::kFp32:
      return visit(float{});
    case DType::kFp64:
      return visit(double{});
    case DType::kInt8:
      return visit(std::int8_t{});
    case DType::kInt16:
      return visit(std::int16_t{});
    case DType::kInt32:
      return visit(std::int32_t{});
    case DType::kInt64:
      return visit(std::int64_t{});
    case DType::kUInt8:
      return visit(std::uint8_t{});
    default:
      PENSTOCK_CHECK(false, "a store holds no values of this type");
  }
}

template <typename To, typename From>
To Converted(From value) {
  if constexpr (std::is_same_v<From, Half>) {
    return Converted<To>(FloatOf(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return HalfOf(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // A value outside of the type's range has no conversion.
    const auto wide = static_cast<double>(value);
    return wide > -9.2e18 && wide < 9.2e18 ? static_cast<To>(static_cast<std::int64_t>(wide)) : To{0};
  } else {
    return static_cast<To>(value);
  }
}

// Integers wrap around.
template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <typename T>
void AddTo(T* sum, const T* more, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = Plus(sum[i], more[i]);
}

template <typename T>
void SumInto(std::span<const Tensor> values, SumOrder order, Tensor& sum) {
  T* const to = sum.Data<T>();
  const std::int64_t count = sum.count();
  std::copy_n(values[0].Data<T>(), count, to);
  if (order == SumOrder::kLeftToRight) {
    for (std::size_t i = 1; i < values.size(); ++i) AddTo(to, values[i].Data<T>(), count);
    return;
  }
  std::vector<T> four;
  for (std::size_t i = 1; i < values.size(); i += 4) {
    const std::size_t end = std::min(i + 4, values.size());
    const T* const first = values[i].Data<T>();
    if (end == i + 1) {
      AddTo(to, first, count);
      continue;
    }
    four.assign(first, first + count);
    for (std::size_t j = i + 1; j < end; ++j) AddTo(four.data(), values[j].Data<T>(), count);
    AddTo(to, four.data(), count);
  }
}

}  // namespace

bool CanStore(DType type) {
  switch (type) {
    case DType::kFp16:
    case DType::kFp32:
    case DType::kFp64:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
      return true;
    default:
      return false;
  }
}

DType KeptType(DType type) { return type == DType::kFp16 ? DType::kFp32 : type; }

void CastInto(const Tensor& from, Tensor& out) {
  PENSTOCK_CHECK(from.count() == out.count(), "a copy needs as many elements");
  if (from.count() == 0) return;
  if (from.dtype() == out.dtype()) return out.CopyFrom(from);
  WithType(from.dtype(), [&](auto source) {
    WithType(out.dtype(), [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      const From* const values = from.Data<From>();
      std::transform(values, values + from.count(), out.Data<To>(),
                     [](From value) { return Converted<To>(value); });
    });
  });
}

void AddElements(DType type, const std::byte* more, std::byte* sum, std::size_t count) {
  WithType(type, [&](auto of) {
    using T = decltype(of);
    if constexpr (!std::is_same_v<T, Half>)
      AddTo(reinterpret_cast<T*>(sum), reinterpret_cast<const T*>(more), static_cast<std::int64_t>(count));
  });
}

Tensor SumOf(std::span<const Tensor> values, DType type, SumOrder order) {
  PENSTOCK_CHECK(!values.empty() && type == KeptType(type),
                 "a sum has terms, and the type in which it is kept");
  std::vector<Tensor> kept;
  for (const Tensor& value : values) {
    if (value.dtype() == type) {
      kept.push_back(value);
    } else {
      CastInto(value, kept.emplace_back(type, value.shape()));
    }
  }
  Tensor sum(type, kept.front().shape());
  if (sum.count() == 0) return sum;
  WithType(type, [&](auto of) {
    if constexpr (!std::is_same_v<decltype(of), Half>) SumInto<decltype(of)>(kept, order, sum);
  });
  return sum;
}

}  // namespace penstock::kvstore
