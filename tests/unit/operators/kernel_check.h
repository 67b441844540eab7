// Two checks for every differentiable op: its f64 gradient against central differences, and its f32 kernels,
// which use oneDNN, against its f64 kernels, which do not.
#pragma once

#include <set>
#include <string>

#include "framework/op/op_registry.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

// The same values in another float type. Tensors of other element types are not changed.
Tensor Converted(const Tensor& tensor, DType type);
Tensors Converted(const Tensors& tensors, DType type);

// Checks that the outputs in `of` and the gradients of `wanted` agree between f32 and f64, with 1 and 2
// threads.
Status FloatAgreesWithDouble(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                             const GradientCheck& check);
// Runs CheckGradient and FloatAgreesWithDouble.
Status CheckKernels(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                    const GradientCheck& check);

// A batch_norm op whose arguments have the lower-case names of their slots.
Op BatchNormOp();

}  // namespace penstock::test
