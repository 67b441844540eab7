// Makes the first update wait until all gradients are reduced.
//
//   plan    reduce b@GRAD on ring 0, rings=2
//   before  (ParamOut=b) = sgd(...) @optimize
//   after   b@GRAD = c_sync_comm_stream(X=b@GRAD) {ring_id=0} @backward
//           b@GRAD = c_sync_comm_stream(X=b@GRAD) {ring_id=1} @backward
//           (ParamOut=b) = sgd(...) @optimize
//
// Requires: AllreduceGradients ran.
#include <algorithm>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {

Result<Program> AwaitGradients(const Program& in, const PassContext& context) {
  const plan::RankPlan& ranks = context.plan.ranks;
  const auto& ops = in.main().ops();
  const auto first = std::find_if(
      ops.begin(), ops.end(), [](const OpEntry& entry) { return Has(entry.op->role(), Role::kOptimize); });
  if (first == ops.end() || ranks.reductions.empty()) return in;
  ProgramEdit edit(in);
  for (int ring = 0; ring < ranks.rings; ++ring) {
    Op await = MakeAwaitRing(ranks.reductions.front().var, ring, Role::kBackward);
    edit.main().InsertBefore(first->id, await.SetMadeBy("await_gradients"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
