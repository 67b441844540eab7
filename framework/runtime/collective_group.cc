#include "framework/runtime/collective_group.h"

namespace penstock {

std::size_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kUInt8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kFp16:
    case ElementType::kBf16:
      return 2;
    case ElementType::kFp32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFp64:
    case ElementType::kInt64:
      return 8;
  }
  PENSTOCK_CHECK(false, "no such element type");
}

std::string_view ElementTypeName(ElementType type) {
  constexpr std::string_view kNames[] = {"f16", "bf16", "f32", "f64", "i32", "i64", "u8", "i8"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view ReductionName(Reduction reduction) {
  constexpr std::string_view kNames[] = {"sum", "mean", "product", "max", "min"};
  return kNames[static_cast<std::size_t>(reduction)];
}

std::optional<ElementType> ElementTypeOf(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kUInt8:
      return ElementType::kUInt8;
    case DType::kInt8:
      return ElementType::kInt8;
    case DType::kInt32:
      return ElementType::kInt32;
    case DType::kInt64:
      return ElementType::kInt64;
    case DType::kFp16:
      return ElementType::kFp16;
    case DType::kFp32:
      return ElementType::kFp32;
    case DType::kFp64:
      return ElementType::kFp64;
    case DType::kInt16:
    case DType::kSizeT:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace penstock
