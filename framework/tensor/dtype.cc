#include "framework/tensor/dtype.h"

#include <array>

namespace penstock {
namespace {

struct Row {
  DType type;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<Row, 10> kRows = {{
    {DType::kBool, "bool", 1},
    {DType::kInt16, "i16", 2},
    {DType::kInt32, "i32", 4},
    {DType::kInt64, "i64", 8},
    {DType::kFp16, "f16", 2},
    {DType::kFp32, "f32", 4},
    {DType::kFp64, "f64", 8},
    {DType::kSizeT, "usize", 8},
    {DType::kUInt8, "u8", 1},
    {DType::kInt8, "i8", 1},
}};

const Row* Find(DType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

bool IsDType(int number) { return Find(static_cast<DType>(number)) != nullptr; }

std::size_t SizeOf(DType type) {
  const Row* row = Find(type);
  return row == nullptr ? 0 : row->bytes;
}

std::string_view DTypeName(DType type) {
  const Row* row = Find(type);
  return row == nullptr ? "?" : row->name;
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

bool IsFloat(DType type) { return type == DType::kFp16 || type == DType::kFp32 || type == DType::kFp64; }

}  // namespace penstock
