// Receives each parameter at the end of the step, after the send of its gradient. The op requests the slices
// and joins them itself.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   after   w = recv(X=__control_var@0.send.w) {epmap=[second server, first],
//                                               recv_varnames=["w.block0", "w.block1"]}
//
// The slices are declared, as in Fluid. Prefetched tables are not received. Requires: SendWholeGradients ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/pieces.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> ReceiveWholeParams(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::ParamPlacement& param : context.plan.params) {
    DeclareParamPieces(param, main);
    if (param.prefetched) continue;
    RecvSpec recv{.after = {plan::ControlName(StrCat("send.", param.param))},
                  .pieces = {param.param},
                  .messages = ParamPieces(param),
                  .addresses = context.plan.AddressesOf(param),
                  .trainer_id = context.self.index,
                  .role_pair = {param.param, param.grad}};
    main.Append(MakeRecv(recv).SetMadeBy("receive_whole_params"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
