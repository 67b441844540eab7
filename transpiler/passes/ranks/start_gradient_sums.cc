// Initializes the sums of several runs' gradients to 0, and the count of these runs, at the end of the
// startup program. Sums of selected rows start without rows.
//
//   plan    reduce w@GRAD : f32[13, 1] on ring 0
//   after   persist w@GRAD@SUM : f32[13, 1]
//           persist w@GRAD@RUNS : i64[1]
//           w@GRAD@SUM = fill_constant() {shape=[13l, 1l], dtype=5}
//           w@GRAD@RUNS = fill_constant() {shape=[1l], dtype=3}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {

Result<Program> StartGradientSums(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "start_gradient_sums";
  ProgramEdit edit(in);
  for (const plan::RingUse& use : context.plan.ranks.reductions) {
    Var sum = GradientSumVar(use);
    if (edit.main().FindVar(sum.name) != nullptr) return NameTaken(kPass, sum.name);
    edit.main().Append(MakeStartOfSum(use).SetMadeBy(kPass));
    edit.main().SetVar(std::move(sum));
  }
  Var runs = CountVar(RunsName(context.plan.ranks));
  if (edit.main().FindVar(runs.name) != nullptr) return NameTaken(kPass, runs.name);
  runs.persistable = true;
  edit.main().Append(MakeCount(runs.name, 0, OpRole::kForward).SetMadeBy(kPass));
  edit.main().SetVar(std::move(runs));
  return edit.Apply();
}

}  // namespace penstock::passes
