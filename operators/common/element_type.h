// Code for each element type: what turns a type that is known at run time into one that the compiler knows,
// and numbers of one type into those of another.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "framework/op/op_def.h"
#include "framework/tensor/half.h"

namespace penstock {

// For slots of an op whose kernels are more than those of Numbers().
template <typename... Ts>
TypeRule OneOfTypes() {
  return {TypeRule::Kind::kOneOf, {DTypeOfT<Ts>::kValue...}, ""};
}

// visit(std::type_identity<T>()) with the T that `type` stands for; false if tensors hold no such elements.
//
//   VisitElementType(out_.dtype, [this]<typename T>(std::type_identity<T>) { fill_ = &Fill<T>; });
template <typename Visit>
bool VisitElementType(DType type, const Visit& visit) {
  switch (type) {
    case DType::kBool:
      visit(std::type_identity<bool>());
      return true;
    case DType::kUInt8:
      visit(std::type_identity<std::uint8_t>());
      return true;
    case DType::kInt8:
      visit(std::type_identity<std::int8_t>());
      return true;
    case DType::kInt16:
      visit(std::type_identity<std::int16_t>());
      return true;
    case DType::kInt32:
      visit(std::type_identity<std::int32_t>());
      return true;
    case DType::kInt64:
      visit(std::type_identity<std::int64_t>());
      return true;
    case DType::kFp16:
      visit(std::type_identity<Half>());
      return true;
    case DType::kFp32:
      visit(std::type_identity<float>());
      return true;
    case DType::kFp64:
      visit(std::type_identity<double>());
      return true;
    default:
      return false;
  }
}

// The same number as a To, by C++'s conversions; through float to half precision and back. NaN as an integer
// of 32 or 64 bits is the least one, as in Fluid and NumPy on x86, as a smaller one 0.
template <typename To, typename From>
To ConvertTo(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    return ConvertTo<To>(FloatOf(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return HalfOf(static_cast<float>(value));
  } else {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
      if (value != value) return sizeof(To) < sizeof(std::int32_t) ? To{0} : std::numeric_limits<To>::min();
    }
    return static_cast<To>(value);  // int8 is a number here: NOLINT(bugprone-signed-char-misuse)
  }
}

}  // namespace penstock
