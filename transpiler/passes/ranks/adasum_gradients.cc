// Reduces gradients by Adasum instead of summing them.
//
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=0} @backward
//   after   w@GRAD = c_allreduce_adasum(X=w@GRAD) {ring_id=0} @backward
//
// Only gradients that the plan reduces: another optimizer of the program may sum its own.
//
// Requires: AllreduceGradients ran; gradients are dense.
#include <set>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {

Result<Program> AdasumGradients(const Program& in, const PassContext& context) {
  std::set<std::string> planned;
  for (const plan::RingUse& use : context.plan.ranks.reductions) planned.insert(use.var);
  ProgramEdit edit(in);
  for (const OpEntry& entry : in.main().ops()) {
    if (entry.op->type() != "c_allreduce_sum" || !Has(entry.op->role(), OpRole::kBackward)) continue;
    if (!planned.contains(entry.op->InputName("X"))) continue;
    Op op = MakeAllReduceAdasum(entry.op->InputName("X"), roles::CollectiveView(*entry.op).ring(),
                                OpRole::kBackward);
    edit.main().Replace(entry.id, std::move(op.SetMadeBy("adasum_gradients")));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
