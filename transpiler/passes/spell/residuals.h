// The residual of a gradient that is compressed with error feedback: the part that was not sent yet.
#pragma once

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// w@RESIDUAL, persistable, with the shape of the whole parameter.
Var ResidualVar(const plan::ParamPlacement& param);
// Adds the residual to the inputs and outputs of the op that sends the gradient.
Op KeepingResidual(Op send, const plan::ParamPlacement& param);
// Fills the residual with zeros.
Op MakeEmptyResidual(const plan::ParamPlacement& param);

}  // namespace penstock::passes
