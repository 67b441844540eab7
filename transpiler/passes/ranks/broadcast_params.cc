// Broadcasts the initial values of rank 0 to all ranks, at the end of the startup program.
//
//   plan    broadcast w on ring 0, broadcast b on ring 1
//   after   w = c_broadcast(X=w) {ring_id=0}
//           b = c_broadcast(X=b) {ring_id=1}
//           b = c_sync_comm_stream(X=b) {ring_id=0}
//           b = c_sync_comm_stream(X=b) {ring_id=1}
//
// Requires: InitRings ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {

Result<Program> BroadcastParams(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "broadcast_params";
  const plan::RankPlan& ranks = context.plan.ranks;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::RingUse& use : ranks.broadcasts)
    main.Append(MakeBroadcast(use.var, use.ring).SetMadeBy(kPass));
  if (ranks.broadcasts.empty()) return edit.Apply();
  for (int ring = 0; ring < ranks.rings; ++ring) {
    main.Append(MakeAwaitRing(ranks.broadcasts.back().var, ring, OpRole::kForward).SetMadeBy(kPass));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
