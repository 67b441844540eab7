// The fill value of ops that fill a tensor with one value, from attributes value (a float) and str_value (a
// text).
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "framework/op/kernel.h"
#include "operators/common/element_type.h"

namespace penstock {

// Parses the text as a T; nullopt if it is not a number that T can hold.
template <typename T>
std::optional<T> ParseNumber(const std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::optional<double> number = ParseNumber<double>(text);
    return number ? std::make_optional(*number != 0) : std::nullopt;
  } else if constexpr (std::is_same_v<T, Half>) {
    const std::optional<float> number = ParseNumber<float>(text);
    return number ? std::make_optional(HalfOf(*number)) : std::nullopt;
  } else {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && at == end) return value;
    if constexpr (std::is_integral_v<T>) {  // "1e3", "2.0"
      const std::optional<double> number = ParseNumber<double>(text);
      const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (number && *number >= -limit && *number < limit) return static_cast<T>(*number);
    }
    return std::nullopt;
  }
}

// Sets `to` to `value`; for integers the fraction is dropped. kInvalidArgument: T cannot hold the value.
template <typename T>
Status FillValueOf(const KernelSetup& k, float value, T& to) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(static_cast<double>(value) >= -limit && static_cast<double>(value) < limit)) {
      return k.Error("attribute value (", value, ") must be a number that fits ",
                     DTypeName(DTypeOfT<T>::kValue));
    }
  }
  to = ConvertTo<T>(value);
  return OkStatus();
}

// Returns the number in str_value if it is not empty, otherwise attribute value. kInvalidArgument: T cannot
// hold it.
template <typename T>
Status ReadFillValue(const KernelSetup& k, T& to) {
  const std::string text = k.Attr<std::string>("str_value");
  if (text.empty()) return FillValueOf(k, k.Attr<float>("value"), to);
  const std::optional<T> value = ParseNumber<T>(text);
  if (!value) {
    return k.Error("attribute str_value ", Quote(text), " must be a number that fits ",
                   DTypeName(DTypeOfT<T>::kValue));
  }
  to = *value;
  return OkStatus();
}

}  // namespace penstock
