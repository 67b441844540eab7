// Gradients that arrive bit by bit: of a loop's rounds, of the elements of an array.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/tensor/variable.h"

namespace penstock {

// `sum` += `part`, both dense (one element type and shape), selected rows, or arrays of dense tensors; an
// empty `sum` becomes `part`. An element of an array that only one side has is taken from there. `part` is
// used up.
//
// kInvalidArgument E-op-gradient: they do not match.
Status AddGradient(Variable& part, Variable& sum);
Status AddGradient(Tensor& part, Tensor& sum);

// `sum` = all arrays added up, element by element; one that an array lacks counts as zero. `sum` may be one
// of the arrays. Errors as above.
Status AddArrays(std::span<const TensorArray* const> arrays, TensorArray& sum);

// Zeros shaped like `forward`: for an array an array without elements.
Status ZeroGradient(const Variable& forward, Variable& grad);

// `to` becomes a copy of `from`, LoD included, in its own memory if that is large enough.
void CopyTensor(const Tensor& from, Tensor& to);
// The same of any variable.
void CopyVariable(const Variable& from, Variable& to);

}  // namespace penstock
