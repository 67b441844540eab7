#include "operators/tensor/convert.h"

#include <type_traits>

#include "operators/tensor/half.h"

namespace penstock {
namespace {

template <typename From, typename To>
To ConvertOne(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    return static_cast<To>(FloatOf(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return HalfOf(static_cast<float>(value));
  } else {
    return static_cast<To>(value);  // int8 is a number here: NOLINT(bugprone-signed-char-misuse)
  }
}

template <typename From, typename To>
void Convert(const Tensor& x, Tensor& out) {
  const From* const from = x.Data<From>();
  To* const to = out.Data<To>();
  const std::int64_t count = x.count();
  for (std::int64_t i = 0; i < count; ++i) to[i] = ConvertOne<From, To>(from[i]);
}

template <typename From>
Converter ConverterFrom(DType to) {
  switch (to) {
    case DType::kBool:
      return Convert<From, bool>;
    case DType::kUInt8:
      return Convert<From, std::uint8_t>;
    case DType::kInt8:
      return Convert<From, std::int8_t>;
    case DType::kInt16:
      return Convert<From, std::int16_t>;
    case DType::kInt32:
      return Convert<From, std::int32_t>;
    case DType::kInt64:
      return Convert<From, std::int64_t>;
    case DType::kFp16:
      return Convert<From, Half>;
    case DType::kFp32:
      return Convert<From, float>;
    case DType::kFp64:
      return Convert<From, double>;
    default:
      return nullptr;
  }
}

}  // namespace

Converter ConverterOf(DType from, DType to) {
  switch (from) {
    case DType::kBool:
      return ConverterFrom<bool>(to);
    case DType::kUInt8:
      return ConverterFrom<std::uint8_t>(to);
    case DType::kInt8:
      return ConverterFrom<std::int8_t>(to);
    case DType::kInt16:
      return ConverterFrom<std::int16_t>(to);
    case DType::kInt32:
      return ConverterFrom<std::int32_t>(to);
    case DType::kInt64:
      return ConverterFrom<std::int64_t>(to);
    case DType::kFp16:
      return ConverterFrom<Half>(to);
    case DType::kFp32:
      return ConverterFrom<float>(to);
    case DType::kFp64:
      return ConverterFrom<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace penstock
