// The type of a value: of a variable as a program declares it, of an op's argument as shape inference finds
// it, or of a tensor that exists.
#pragma once

#include <cstdint>

#include "framework/ir/var.h"
#include "framework/tensor/shape.h"

namespace penstock {

class Tensor;

struct TensorDesc {
  VarKind kind = VarKind::kTensor;
  DType dtype = DType::kFp32;
  bool has_type = true;  // false: a control or raw variable, or an output not declared yet
  // True: the element type is known only at run time, so a program may declare a type that no kernel accepts.
  bool dtype_is_loose = false;
  std::int32_t lod_level = 0;
  Shape shape;
};

TensorDesc DescOf(const Var& declared);
TensorDesc DescOf(const Tensor& tensor);

}  // namespace penstock
