#include "framework/ir/var.h"

namespace penstock {
namespace {

bool SameType(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.lod_level == b.lod_level;
}

}  // namespace

const Shape& Var::shape() const {
  static const Shape kNone{};
  return type.has_value() ? type->shape : kNone;
}

bool Var::SameAs(const Var& other) const {
  if (name != other.name || kind != other.kind || persistable != other.persistable ||
      need_check_feed != other.need_check_feed || tuple != other.tuple) {
    return false;
  }
  if (type.has_value() != other.type.has_value() || (type.has_value() && !SameType(*type, *other.type)))
    return false;
  if (reader.size() != other.reader.size()) return false;
  for (std::size_t i = 0; i < reader.size(); ++i) {
    if (!SameType(reader[i], other.reader[i])) return false;
  }
  return true;
}

Var TensorVar(std::string name, DType dtype, Shape shape, std::int32_t lod_level) {
  Var var;
  var.name = std::move(name);
  var.type = TensorType{dtype, std::move(shape), lod_level, true};
  return var;
}

Var ControlVar(std::string name) {
  Var var;
  var.name = std::move(name);
  return var;
}

}  // namespace penstock
