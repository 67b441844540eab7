// Makes a schedule's step the sum of the trainers' step counters.
//
//   before  (pserver) block 1 { step = increment(X=step) {step=1.0} @lr_sched ; ... }
//   after   (pserver) block 1 { step = sum(X=[step.trainer_0, step.trainer_1]) @lr_sched ; ... }
//
// Requires: PlaceLrSchedule ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/step_counters.h"

namespace penstock::passes {

Result<Program> CountSteps(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::StepCounter& counter : context.analysis.step_counters) {
    if (in.main().FindVar(counter.var) == nullptr) continue;  // this server has no schedule
    NameList counted;
    for (Var& var : StepCounterVars(counter, context)) {
      counted.push_back(var.name);
      edit.main().SetVar(std::move(var));
    }
    for (int block = 1; block < in.block_count(); ++block) {
      for (const OpEntry& entry : in.block(block).ops()) {
        const auto counts = plan::CountedBy(*entry.op, context.plan.conventions());
        if (!counts || counts->var != counter.var) continue;
        Op sum = MakeSum(counted, counter.var);
        sum.SetRole(OpRole::kLrSched).SetMadeBy("count_steps");
        edit.block(block).Replace(entry.id, std::move(sum));
      }
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
