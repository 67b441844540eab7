// Initializes this rank's step counter to 0, at the end of the startup program; with on_uneven also its
// counter of examples.
//
//   after   persist @LOCAL_SGD_STEP@ : i64[1]
//           @LOCAL_SGD_STEP@ = fill_constant() {shape=[1l], dtype=3}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> CountLocalSteps(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "count_local_steps";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  std::vector<const char*> counts = {plan::kLocalSgdStep};
  if (context.plan.on_uneven != OnUneven::kNone) counts.push_back(plan::kRankExamples);
  for (const char* name : counts) {
    Var count = CountVar(name);
    if (main.FindVar(name) != nullptr) return NameTaken(kPass, name);
    count.persistable = true;
    main.Append(MakeCount(name, 0, OpRole::kForward).SetMadeBy(kPass));
    main.SetVar(std::move(count));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
