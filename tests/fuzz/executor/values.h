// Random values for variables, which may deviate from their declarations.
#pragma once

#include "framework/ir/var.h"
#include "framework/tensor/variable.h"
#include "tests/support/random_network.h"

namespace penstock::fuzz {

using test::Draw;

Tensor AnyTensor(Draw& draw, DType dtype, const Shape& shape);
// A value for `var`. `batch` replaces unknown extents. One in `odd` values deviates from the declaration; 0:
// none.
Tensor TensorFor(Draw& draw, const Var& var, Dim batch, int odd);
Variable ValueFor(Draw& draw, const Var& var, Dim batch, int odd);
// `tensor` with one change: another extent, element type, element, or division into sequences.
Tensor Changed(Draw& draw, const Tensor& tensor);

}  // namespace penstock::fuzz
