// Adds a barrier that completes the recvs of the step. Its outputs are all received variables, so that ops
// that read these run after it.
//
//   before  b = recv(...) ; [w.block0, w.block1] = recv(...)
//   after   the same, then
//           [b, w.block0, w.block1] = fetch_barrier(X=__control_var@0.send_barrier) {endpoints=[all]}
//
// Requires: AddSendBarrier and ReceiveParams ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> AddFetchBarrier(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  NameList received;
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.prefetched) continue;
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      received.push_back(plan::ParamPieceName(param, static_cast<int>(i)));
    }
  }
  edit.main().Append(MakeFetchBarrier({plan::ControlName("send_barrier")}, context.plan.pservers,
                                      context.self.index, received)
                         .SetMadeBy("add_fetch_barrier"));
  return edit.Apply();
}

}  // namespace penstock::passes
