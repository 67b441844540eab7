// Values for variables: as they are declared, nearly so, or not at all so.
#pragma once

#include "framework/ir/var.h"
#include "framework/tensor/variable.h"
#include "tests/support/random_network.h"

namespace penstock::fuzz {

using test::Draw;

Tensor AnyTensor(Draw& draw, DType dtype, const Shape& shape);
// `batch` stands for extents that are not known. `odd`: in how many cases one is not as declared; 0: never.
Tensor TensorFor(Draw& draw, const Var& var, Dim batch, int odd);
Variable ValueFor(Draw& draw, const Var& var, Dim batch, int odd);
// The same value with a change: another extent, element type, number, or partition into sequences.
Tensor Changed(Draw& draw, const Tensor& tensor);

}  // namespace penstock::fuzz
