#include "executor/graph/type_table.h"

#include <string_view>

namespace penstock::exec {
namespace {

std::uint32_t HashOf(const TensorDesc& type) {
  const Dims dims = type.shape.dims();
  const std::string_view bytes(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
  return FlatHash(bytes) ^ (static_cast<std::uint32_t>(type.dtype) << 16) ^
         static_cast<std::uint32_t>(type.kind);
}

bool IsSame(const TensorDesc& a, const TensorDesc& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.lod_level == b.lod_level && a.has_type == b.has_type &&
         a.dtype_is_loose == b.dtype_is_loose && a.shape == b.shape;
}

}  // namespace

int TypeTable::IndexOf(const TensorDesc& type) {
  const std::uint32_t hash = HashOf(type);
  const std::int64_t found = index_.Find(hash, [&](std::size_t at) { return IsSame(types_[at], type); });
  if (found != FlatIndex::kAbsent) return static_cast<int>(found);
  index_.Add(hash, types_.size());
  types_.push_back(type);
  return static_cast<int>(types_.size()) - 1;
}

}  // namespace penstock::exec
