// Initializes the sums of several steps' gradients to 0, at the end of the startup program.
//
//   plan    reduce w@GRAD : f32[13, 1] on ring 0
//   after   persist w@GRAD@SUM : f32[13, 1]
//           w@GRAD@SUM = fill_constant() {shape=[13l, 1l], dtype=5}
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
    edit.main().Append(MakeZeroTensor(sum).SetMadeBy(kPass));
    edit.main().SetVar(std::move(sum));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
