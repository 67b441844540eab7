// Ends the trainer's step: tells every pserver that the trainer has sent all gradients of the step.
//
//   before  __control_var@0.send.b = send(...) ; __control_var@0.send.w = send(...)
//   after   the same, and at the end of the block
//           __control_var@0.send_barrier = send_barrier(X=[both]) {endpoints=[all]}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> AddSendBarrier(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  NameList sent;
  for (const int position : context.plan.send_order) {
    sent.push_back(
        plan::ControlName(StrCat("send.", context.plan.params[static_cast<std::size_t>(position)].param)));
  }
  for (const plan::TablePlacement& table : context.plan.tables) {
    sent.push_back(plan::ControlName(StrCat("send.", table.table)));
  }
  const std::string done = plan::ControlName("send_barrier");
  edit.main().SetVar(ControlVar(done));
  edit.main().Append(
      MakeSendBarrier(sent, context.plan.pservers, context.self.index, done).SetMadeBy("add_send_barrier"));
  return edit.Apply();
}

}  // namespace penstock::passes
