// Sums each gradient over all ranks, right after the backward op that completes it.
//
//   plan    reduce w@GRAD on ring 0
//   before  (Y@GRAD=w@GRAD) = mul_grad(...) @backward(w, w@GRAD)
//   after   (Y@GRAD=w@GRAD) = mul_grad(...) @backward(w, w@GRAD)
//           w@GRAD = c_sync_calc_stream(X=w@GRAD) @backward
//           w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=0} @backward
//
// The part of a gradient that `dgc` selects is mostly zero, so c_sparse_allreduce_sum sums it, except in
// compat: Fluid leaves that to its executor. Of several gradients of one op the last is sent first, in the
// plan's order. Clipping and regularization, which are optimize-role ops, work on the sum.
#include <unordered_map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {

Result<Program> AllreduceGradients(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "allreduce_gradients";
  std::unordered_map<std::string, int> ring_of;
  for (const plan::RingUse& use : context.plan.ranks.reductions) ring_of.emplace(use.var, use.ring);
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const OpEntry& entry : in.main().ops()) {
    if (!Has(entry.op->role(), OpRole::kBackward)) continue;
    std::vector<std::string> grads;
    for (auto& [param, grad] : entry.op->RolePairs()) {
      if (ring_of.contains(grad)) grads.push_back(std::move(grad));
    }
    if (grads.empty()) continue;
    const bool sparse = entry.op->type() == "dgc" && context.plan.conventions().sums_sparsely;
    main.InsertAfter(entry.id, MakeAwaitComputation(grads.front(), OpRole::kBackward).SetMadeBy(kPass));
    for (auto grad = grads.rbegin(); grad != grads.rend(); ++grad) {
      const int ring = ring_of.at(*grad);
      Op sum = sparse ? MakeSparseAllReduce(*grad, ring, OpRole::kBackward)
                      : MakeAllReduce(*grad, ring, OpRole::kBackward);
      main.InsertAfter(entry.id, std::move(sum.SetMadeBy(kPass)));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
