// Initializes the variables of adaptive local SGD, at the end of the startup program: the first average is
// after one step.
//
//   after   persist @LOCAL_SGD_K@ : i64[1]
//           @LOCAL_SGD_K@ = fill_constant() {value=1}
//           @LOCAL_SGD_BEGUN@, @LOCAL_SGD_LOSS_0@, @LOCAL_SGD_RATE_0@ = fill_constant() {value=0}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/adaptive_steps.h"
#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {

Result<Program> StartAdaptiveSteps(const Program& in, const PassContext&) {
  constexpr char kPass[] = "start_adaptive_steps";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (Var& var : AdaptiveStepVars()) {
    if (main.FindVar(var.name) != nullptr) return NameTaken(kPass, var.name);
    const bool steps = var.type->dtype == DType::kInt64;
    Op start = steps ? MakeCount(var.name, 1, OpRole::kForward) : MakeFloat(var.name, 0.0f, OpRole::kForward);
    main.Append(start.SetMadeBy(kPass));
    main.SetVar(std::move(var));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
