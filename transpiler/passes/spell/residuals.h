// What a trainer has not sent of a gradient that is compressed with error feedback.
#pragma once

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// w@RESIDUAL, persistable, of the parameter's shape.
Var ResidualVar(const plan::ParamPlacement& param);
// The op that sends the gradient, with the residual as what it reads and writes.
Op KeepingResidual(Op send, const plan::ParamPlacement& param);
// Fills it with zeros.
Op MakeEmptyResidual(const plan::ParamPlacement& param);

}  // namespace penstock::passes
