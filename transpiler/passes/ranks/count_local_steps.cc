// Starts this rank's count of steps at 0, at the end of the start-up program.
//
//   after   persist @LOCAL_SGD_STEP@ : i64[1]
//           @LOCAL_SGD_STEP@ = fill_constant() {shape=[1l], dtype=3}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> CountLocalSteps(const Program& in, const PassContext&) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  Var step = CountVar(plan::kLocalSgdStep);
  if (main.FindVar(step.name) != nullptr) return NameTaken("count_local_steps", step.name);
  step.persistable = true;
  main.Append(MakeCount(step.name, 0, Role::kForward).SetMadeBy("count_local_steps"));
  main.SetVar(std::move(step));
  return edit.Apply();
}

}  // namespace penstock::passes
