// Tells the pservers with a learning-rate schedule that this trainer has finished a step. Each trainer has
// its own counter there, to which the pserver adds the sent value.
//
//   before  step = increment(X=step) {step=1.0} @lr_sched
//   after   the same, and at the end of the block
//           __control_var@0.send.step = send(X=step.trainer_0) {epmap=[all], merge_add=true,
//                                                               use_send_handler=false}
//
// Requires: DropOptimizers has not run.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/lr_ops.h"
#include "transpiler/passes/spell/pieces.h"
#include "transpiler/passes/spell/step_counters.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> SendStepCounters(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::StepCounter& counter : context.analysis.step_counters) {
    for (Var& var : StepCounterVars(counter, context)) {
      PENSTOCK_RETURN_IF_ERROR(RequireFreeName(context.main, counter.var, var.name));
      main.SetVar(std::move(var));
    }
    NameList addresses = ScheduledPservers(counter, context);
    if (addresses.empty()) continue;
    const std::string done = plan::ControlName(StrCat("send.", counter.var));
    main.SetVar(ControlVar(done));
    const std::string own = plan::StepCounterName(counter.var, context.self.index);
    main.Append(MakeStepNotice(own, addresses, SenderId(context), done).SetMadeBy("send_step_counters"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
