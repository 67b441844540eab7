// Receives each parameter, or its slices, at the end of the step: after the send barrier if there is one,
// else after the send of the parameter's own gradient.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   after   [w.block0, w.block1] = recv(X=__control_var@0.send_barrier) {epmap=[second server, first]}
//
// Prefetched tables are not received. Requires: SendGradients ran.
#include <algorithm>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/pieces.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> ReceiveParams(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const auto& ops = in.main().ops();
  const bool barrier = std::any_of(ops.begin(), ops.end(),
                                   [](const OpEntry& entry) { return entry.op->type() == "send_barrier"; });
  for (const plan::ParamPlacement& param : context.plan.params) {
    DeclareParamPieces(param, main);
    if (param.prefetched) continue;
    RecvSpec recv{.after = {plan::ControlName(barrier ? "send_barrier" : StrCat("send.", param.param))},
                  .pieces = ParamPieces(param),
                  .messages = {},
                  .addresses = context.plan.AddressesOf(param),
                  .trainer_id = context.self.index,
                  .role_pair = {param.param, param.grad}};
    main.Append(MakeRecv(recv).SetMadeBy("receive_params"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
