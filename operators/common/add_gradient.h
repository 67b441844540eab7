// Sums gradients that are computed in parts: by the iterations of a loop, or for the elements of an array.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/ir/var.h"
#include "framework/tensor/variable.h"

namespace penstock {

// Computes `sum` += `part`. Both are dense (same element type and shape), selected rows, or arrays of dense
// tensors. An empty `sum` becomes `part`. An array element that only one side has is taken from that side.
// `part` is unspecified afterwards.
//
// kInvalidArgument E-op-gradient: `sum` and `part` do not match.
Status AddGradient(Variable& part, Variable& sum);
Status AddGradient(Tensor& part, Tensor& sum);

// Sets `sum` to the elementwise sum of all arrays. An element that an array lacks counts as zero. `sum` may
// be one of the arrays. Errors as for AddGradient.
Status AddArrays(std::span<const TensorArray* const> arrays, TensorArray& sum);

// Sets `grad` to zeros shaped like `forward`. If `forward` is an array, `grad` becomes an array without
// elements. If `kind`, the declared kind of `grad`, is selected rows, `grad` becomes selected rows without
// rows.
Status ZeroGradient(const Variable& forward, Variable& grad, VarKind kind = VarKind::kTensor);

// Copies `from` to `to`, LoD included. Reuses the memory of `to` if it is large enough.
void CopyTensor(const Tensor& from, Tensor& to);
// Does the same for a variable of any kind.
void CopyVariable(const Variable& from, Variable& to);

}  // namespace penstock
