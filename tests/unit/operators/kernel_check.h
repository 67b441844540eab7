// Two checks that every differentiable op passes: its f64 gradient against central differences, and its f32
// kernels (which are oneDNN's) against its f64 ones (which are not).
#pragma once

#include <set>
#include <string>

#include "framework/op/op_registry.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

// The same values in another float type; other element types stay.
Tensor Converted(const Tensor& tensor, DType type);
Tensors Converted(const Tensors& tensors, DType type);

// Outputs named in `of`, and the gradients of `wanted`, agree between f32 and f64, for teams of 1 and 2
// threads.
Status FloatAgreesWithDouble(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                             const GradientCheck& check);
// CheckGradient and FloatAgreesWithDouble.
Status CheckKernels(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                    const GradientCheck& check);

// batch_norm with each argument under its slot's name in lower case.
Op BatchNormOp();

}  // namespace penstock::test
