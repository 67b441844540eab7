#include "transpiler/passes/spell/adaptive_steps.h"

#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {

std::vector<Var> AdaptiveStepVars() {
  std::vector<Var> vars = {CountVar(kStepsToAverage)};
  for (const char* name : {kStepsBegun, kFirstLoss, kFirstRate})
    vars.push_back(TensorVar(name, DType::kFp32, Shape({1})));
  for (Var& var : vars) var.persistable = true;
  return vars;
}

}  // namespace penstock::passes
