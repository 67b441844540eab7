// Geo: the variable for the difference of a parameter or slice. Selected rows if its gradients are.
#pragma once

#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

inline Var DeltaVar(const plan::ParamPlacement& param, std::string name, Shape shape) {
  Var var = TensorVar(std::move(name), param.dtype, std::move(shape));
  if (param.sparse) var.kind = VarKind::kSelectedRows;
  return var;
}

}  // namespace penstock::passes
