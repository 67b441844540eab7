#include "executor/checkpoint/array_files.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/base/strings.h"

namespace penstock::checkpoint {
namespace {

// NumPy's name of an element type: "<f4".
std::string NumpyType(DType type) {
  const bool is_unsigned = type == DType::kUInt8 || type == DType::kSizeT;
  const char kind = type == DType::kBool ? 'b' : IsFloat(type) ? 'f' : is_unsigned ? 'u' : 'i';
  return StrCat(SizeOf(type) == 1 ? '|' : '<', kind, SizeOf(type));
}

// "F32".
std::string SafetensorsType(DType type) {
  if (type == DType::kBool) return "BOOL";
  const bool is_unsigned = type == DType::kUInt8 || type == DType::kSizeT;
  return StrCat(IsFloat(type) ? 'F' : is_unsigned ? 'U' : 'I', 8 * SizeOf(type));
}

}  // namespace

// Format 1.0: a text that describes the array, filled up to 64 bytes.
std::string NumpyHead(DType type, const Shape& shape) {
  std::string extents;
  for (const Dim extent : shape.dims()) extents += StrCat(extent, ", ");
  if (shape.rank() > 1) extents.resize(extents.size() - 2);
  if (shape.rank() == 1) extents.resize(extents.size() - 1);
  std::string text =
      StrCat("{'descr': '", NumpyType(type), "', 'fortran_order': False, 'shape': (", extents, "), }");
  constexpr std::size_t kBefore = 10, kAligned = 64;
  text.resize((kBefore + text.size() + 1 + kAligned - 1) / kAligned * kAligned - kBefore - 1, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

std::string SafetensorsHead(const std::vector<ArrayType>& arrays,
                            const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json;
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const ArrayType& array : arrays) {
    const std::uint64_t end = at + static_cast<std::uint64_t>(array.shape.Count()) * SizeOf(array.type);
    json[array.name] = {{"dtype", SafetensorsType(array.type)},
                        {"shape", std::vector<Dim>(array.shape.dims().begin(), array.shape.dims().end())},
                        {"data_offsets", {at, end}}};
    at = end;
  }
  if (json.is_null()) json = nlohmann::ordered_json::object();
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the elements are aligned
  std::string head;
  for (int byte = 0; byte < 8; ++byte) head += static_cast<char>(text.size() >> (8 * byte) & 0xff);
  return head + text;
}

}  // namespace penstock::checkpoint
