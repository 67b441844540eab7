// The second-order gradients of elementwise_add, _sub, _mul and _div.
#pragma once

#include "framework/op/op_registry.h"

namespace penstock {

// Declares `<type>_grad_grad` for each of them.
void AddElementwiseSecondOrder(OpRegistry& ops, OpDef& add, OpDef& sub, OpDef& mul, OpDef& div);

}  // namespace penstock
