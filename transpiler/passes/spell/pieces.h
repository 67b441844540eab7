// The variables of a trainer that hold the slices of a parameter or of its gradient.
#pragma once

#include "framework/ir/edit.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// kInvalidArgument E-plan-name-clash: the user's program has a variable called `name`, which role programs
// need for a variable derived from `owner`.
Status RequireFreeName(const Program& main, const std::string& owner, const std::string& name);

// w.block0, w.block1; only w if it is not sliced.
NameList ParamPieces(const plan::ParamPlacement& param);
// w@GRAD.block0, w@GRAD.block1; only w@GRAD if it is not sliced.
NameList GradPieces(const plan::ParamPlacement& param);

// Declare these variables; do nothing if the parameter is not sliced, because the whole is already declared.
void DeclareParamPieces(const plan::ParamPlacement& param, BlockEdit& main);
void DeclareGradPieces(const plan::ParamPlacement& param, BlockEdit& main);

}  // namespace penstock::passes
