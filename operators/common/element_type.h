// Dispatch from an element type known at run time to code for that type, and conversion of numbers between
// element types.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "framework/op/op_def.h"
#include "framework/tensor/half.h"

namespace penstock {

// The type rule of a slot that accepts exactly the element types Ts, for sets that Numbers() does not cover.
template <typename... Ts>
TypeRule OneOfTypes() {
  return {TypeRule::Kind::kOneOf, {DTypeOfT<Ts>::kValue...}, ""};
}

// Calls visit(std::type_identity<T>()) with the C++ type T of `type`. Returns false if `type` is no element
// type of tensors.
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

// Converts `value` to To, by C++'s conversions; half precision goes through float. NaN becomes the smallest
// integer of 32 or 64 bits, as in Fluid and NumPy on x86, and 0 for smaller integer types.
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
