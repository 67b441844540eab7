// The second-order gradient of mul.
#pragma once

#include "framework/op/op_registry.h"

namespace penstock {

// Declares mul_grad_grad.
void AddMulSecondOrder(OpRegistry& ops, OpDef& mul);

}  // namespace penstock
