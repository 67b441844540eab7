// Adds a barrier for the threads of this trainer. The communicator then merges the gradients of all threads,
// sends them and receives the parameters before any thread continues.
//
//   before  __control_var@0.send.b = send(...) ; __control_var@0.send.w = send(...)
//   after   the same, and at the end of the block
//           __control_var@0.send_barrier = send_barrier(X=[both]) {endpoints=[all], half_async=true}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> AddCommunicatorBarrier(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  NameList sent;
  for (const int position : context.plan.send_order) {
    sent.push_back(
        plan::ControlName(StrCat("send.", context.plan.params[static_cast<std::size_t>(position)].param)));
  }
  for (const plan::TablePlacement& table : context.plan.tables) {
    if (context.plan.conventions().barrier_names_all_tables || plan::TableSendIsAwaited(context.plan))
      sent.push_back(plan::ControlName(StrCat("send.", table.table)));
  }
  for (const plan::StepCounter& counter : context.analysis.step_counters) {
    const std::string control = plan::ControlName(StrCat("send.", counter.var));
    if (in.main().FindVar(control) != nullptr) sent.push_back(control);
  }
  const std::string done = plan::ControlName("send_barrier");
  edit.main().SetVar(ControlVar(done));
  edit.main().Append(MakeCommunicatorBarrier(sent, context.plan.pservers, context.self.index, done)
                         .SetMadeBy("add_communicator_barrier"));
  return edit.Apply();
}

}  // namespace penstock::passes
