// Ends a step of local SGD: each parameter becomes the snapshot minus the mean of all ranks' updates, and
// that value is the next snapshot.
//
//   plan    {2 ranks, rings=1} reduce w on ring 0
//   after   w = c_sync_comm_stream(X=w) {ring_id=0}
//           w = scale(X=w) {scale=0.5}
//           w = elementwise_sub(X=w@SNAPSHOT, Y=w)
//           w@SNAPSHOT = assign(X=w)
//
// Requires: AllreduceUpdates ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/local_sgd_ops.h"

namespace penstock::passes {

Result<Program> ApplyMeanUpdate(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (Op& op : ApplyMeanUpdateOps(context.plan)) {
    edit.main().Append(std::move(op.SetMadeBy("apply_mean_update")));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
