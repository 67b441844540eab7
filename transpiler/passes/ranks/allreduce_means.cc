// Replaces each gradient that the plan reduces by its mean over all trainers, right after its last writer in
// the backward pass, clipping included.
//
//   plan    {2 trainers} reduce w@GRAD on ring 0
//   before  (Y@GRAD=w@GRAD) = mul_grad(...) @backward(w, w@GRAD)
//   after   (Y@GRAD=w@GRAD) = mul_grad(...) @backward(w, w@GRAD)
//           w@GRAD = scale(X=w@GRAD) {scale=0.5} @backward
//           w@GRAD = c_sync_calc_stream(X=w@GRAD) @backward
//           w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=0} @backward
//
// The pass scales the gradient and not the loss, because pservers take the mean of the other gradients of the
// same backward pass. Requires: KeepClipping ran.
#include <unordered_map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

Result<Program> AllreduceMeans(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "allreduce_means";
  std::unordered_map<std::string, OpId> writer;
  for (const OpEntry& entry : in.main().ops()) {
    if (!Has(entry.op->role(), OpRole::kBackward)) continue;
    for (std::string& name : entry.op->OutputNames()) writer[std::move(name)] = entry.id;
  }
  const float share = static_cast<float>(1.0 / context.plan.trainers);
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::RingUse& use : context.plan.ranks.reductions) {
    const auto at = writer.find(use.var);
    if (at == writer.end()) return PassError(kPass, "no op writes ", use.var, ", a gradient that is planned");
    Op scale = MakeScale(use.var, share);
    OpId last = main.InsertAfter(at->second, scale.SetRole(OpRole::kBackward).SetMadeBy(kPass));
    last = main.InsertAfter(last, MakeAwaitComputation(use.var, OpRole::kBackward).SetMadeBy(kPass));
    main.InsertAfter(last, MakeAllReduce(use.var, use.ring, OpRole::kBackward).SetMadeBy(kPass));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
