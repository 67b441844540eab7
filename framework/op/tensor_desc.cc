#include "framework/op/tensor_desc.h"

#include "framework/ir/var.h"
#include "framework/tensor/tensor.h"

namespace penstock {

TensorDesc DescOf(const Var& declared) {
  TensorDesc desc;
  desc.kind = declared.kind;
  desc.has_type = declared.type.has_value();
  if (declared.type) {
    desc.dtype = declared.type->dtype;
    desc.shape = declared.type->shape;
    desc.lod_level = declared.type->lod_level;
  }
  return desc;
}

TensorDesc DescOf(const Tensor& tensor) {
  TensorDesc desc;
  desc.dtype = tensor.dtype();
  desc.shape = tensor.shape();
  desc.lod_level = static_cast<std::int32_t>(tensor.lod().size());
  return desc;
}

}  // namespace penstock
