// Element types, with the numbers that Fluid's files and messages use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

enum class DType : std::int32_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFp16 = 4,
  kFp32 = 5,
  kFp64 = 6,
  kSizeT = 19,
  kUInt8 = 20,
  kInt8 = 21,
};

// Whether `number` is one of the numbers above; check values from a file or a peer.
bool IsDType(int number);
std::size_t SizeOf(DType type);          // bytes per element
std::string_view DTypeName(DType type);  // "f32", as the textual form spells it
std::optional<DType> DTypeFromName(std::string_view name);
bool IsFloat(DType type);

template <typename T>
struct DTypeOfT;
template <>
struct DTypeOfT<bool> {
  static constexpr DType kValue = DType::kBool;
};
template <>
struct DTypeOfT<std::int16_t> {
  static constexpr DType kValue = DType::kInt16;
};
template <>
struct DTypeOfT<std::int32_t> {
  static constexpr DType kValue = DType::kInt32;
};
template <>
struct DTypeOfT<std::int64_t> {
  static constexpr DType kValue = DType::kInt64;
};
template <>
struct DTypeOfT<float> {
  static constexpr DType kValue = DType::kFp32;
};
template <>
struct DTypeOfT<double> {
  static constexpr DType kValue = DType::kFp64;
};
template <>
struct DTypeOfT<std::uint8_t> {
  static constexpr DType kValue = DType::kUInt8;
};
template <>
struct DTypeOfT<std::int8_t> {
  static constexpr DType kValue = DType::kInt8;
};

}  // namespace penstock
