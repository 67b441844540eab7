// Makes all trainers start from trainer 0's values of variables that no pserver updates: trainer 0 sends them
// and every trainer receives them, before the parameters.
//
//   plan    start mean : f32[3] on pserver 1
//   before  (Out=mean) = fill_constant()
//   after   (Out=mean) = fill_constant()
//           __control_var@0.send.mean = send(X=mean) {epmap=[second server]}        trainer 0 only
//           mean = recv(X=__control_var@0.send.mean) {epmap=[second server]}
//
// Requires: ReceiveInitialParams, whose fetch_barrier completes the recv, runs later.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> ShareStartValues(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "share_start_values";
  if (context.plan.start_values.empty()) return in;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  std::vector<Op> recvs;
  for (const plan::StartValue& value : context.plan.start_values) {
    const NameList server = {context.plan.pservers[static_cast<std::size_t>(value.pserver)]};
    RecvSpec recv{.after = {},
                  .pieces = {value.name},
                  .addresses = server,
                  .trainer_id = context.self.index,
                  .role_pair = {}};
    if (context.self.index == 0) {
      const std::string sent = plan::ControlName(StrCat("send.", value.name));
      main.SetVar(ControlVar(sent));
      main.Append(MakeSend({.pieces = {value.name},
                            .sections = {},
                            .messages = {},
                            .addresses = server,
                            .trainer_id = context.self.index,
                            .param = "",
                            .grad = "",
                            .done = sent})
                      .SetMadeBy(kPass));
      recv.after = {sent};
    }
    recvs.push_back(std::move(MakeRecv(recv).SetMadeBy(kPass)));
  }
  for (Op& recv : recvs) main.Append(std::move(recv));
  return edit.Apply();
}

}  // namespace penstock::passes
