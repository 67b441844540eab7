#include "framework/op/var_info.h"

#include "framework/ir/var.h"
#include "framework/tensor/tensor.h"

namespace penstock {

VarInfo InfoOf(const Var& declared) {
  VarInfo info;
  info.kind = declared.kind;
  info.has_type = declared.type.has_value();
  if (declared.type) {
    info.dtype = declared.type->dtype;
    info.shape = declared.type->shape;
    info.lod_level = declared.type->lod_level;
  }
  return info;
}

VarInfo InfoOf(const Tensor& tensor) {
  VarInfo info;
  info.dtype = tensor.dtype();
  info.shape = tensor.shape();
  info.lod_level = static_cast<std::int32_t>(tensor.lod().size());
  return info;
}

}  // namespace penstock
