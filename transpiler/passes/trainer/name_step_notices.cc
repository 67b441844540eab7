// Names the step counters in sends for the communicator, which identifies messages by name.
//
//   before  send(X=step.trainer_0) {use_send_handler=false}
//   after   send(X=step.trainer_0) {use_send_handler=false, send_varnames=["step.trainer_0"]}
//
// Requires: SendStepCounters ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> NameStepNotices(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::StepCounter& counter : context.analysis.step_counters) {
    const std::optional<OpId> send = edit.main().LastWriter(plan::ControlName(StrCat("send.", counter.var)));
    if (!send) continue;
    Op named = *edit.main().FindOp(*send);
    SetMessages(named, {plan::StepCounterName(counter.var, context.self.index)});
    edit.main().Replace(*send, std::move(named));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
