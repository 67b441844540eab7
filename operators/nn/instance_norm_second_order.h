// The second-order gradient of instance_norm.
#pragma once

#include "framework/op/op_registry.h"

namespace penstock {

// Declares instance_norm_grad_grad.
void AddInstanceNormSecondOrder(OpRegistry& ops, OpDef& instance_norm);

}  // namespace penstock
