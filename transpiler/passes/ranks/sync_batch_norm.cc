// Makes batch normalisation compute its moments over the batches of all ranks, on the last ring.
//
//   plan    {2 ranks, rings=2}
//   before  (Y=y, ...) = batch_norm(X=x, ...)
//           (X@GRAD=x@GRAD, ...) = batch_norm_grad(X=x, ...)
//   after   (Y=y, ...) = sync_batch_norm(X=x, ...) {ring_id=1}
//           (X@GRAD=x@GRAD, ...) = sync_batch_norm_grad(X=x, ...) {ring_id=1}
//
// With on_uneven both also get Live=@RANK_LIVE@, so that a batch that a rank repeats does not count.
//
// No gradient is sent on that ring, so moments do not wait for gradients in flight.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

std::string TypeOverRanks(const Op& op) {
  if (op.type() == "batch_norm") return "sync_batch_norm";
  if (op.type() == "batch_norm_grad") return "sync_batch_norm_grad";
  return "";
}

}  // namespace

Result<Program> SyncBatchNorm(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (int block = 0; block < in.block_count(); ++block) {
    for (const OpEntry& entry : in.block(block).ops()) {
      const std::string type = TypeOverRanks(*entry.op);
      if (type.empty()) continue;
      Op op = *entry.op;
      op.SetType(type).Set("ring_id", context.plan.ranks.rings - 1);
      if (context.plan.on_uneven != OnUneven::kNone) op.AddInput("Live", {plan::kRankLive});
      edit.block(block).Replace(entry.id, std::move(op.SetMadeBy("sync_batch_norm")));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
