// Divides the loss's gradient by the number of ranks, so that the sum of all ranks' gradients is their mean.
//
//   before  loss@GRAD = fill_constant() {value=1.0} @backward|loss
//   after   loss@GRAD = fill_constant() {value=1.0} @backward|loss
//           loss@GRAD = scale(X=loss@GRAD) {scale=0.5} @backward
//
// For batches of equal size; otherwise each rank has its own share (share_loss_gradient.cc). A loss whose
// gradients ranks exchange since an earlier rewriting keeps its scale.
#include <set>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/exchanged.h"

namespace penstock::passes {

Result<Program> ScaleLossGradient(const Program& in, const PassContext& context) {
  const float factor = static_cast<float>(1.0 / context.plan.trainers);
  const plan::Conventions& conventions = context.plan.conventions();
  const std::set<OpId> earlier =
      conventions.respects_earlier_rewriting ? plan::Exchanged(in).losses : std::set<OpId>();
  ProgramEdit edit(in);
  bool found = false;
  for (const OpEntry& entry : in.main().ops()) {
    const std::vector<std::string> made = entry.op->OutputNames();
    if (entry.op->role() != (OpRole::kBackward | OpRole::kLoss) || made.empty()) continue;
    found = true;
    if (earlier.contains(entry.id)) continue;
    Op scale = MakeScale(made.front(), factor);
    edit.main().InsertAfter(entry.id, scale.SetRole(OpRole::kBackward).SetMadeBy("scale_loss_gradient"));
  }
  if (!found && conventions.requires_loss) {
    return InvalidArgument("E-pass-no-loss",
                           "scale_loss_gradient: no op has the role backward|loss, so that ",
                           "gradients would be added where their mean is meant")
        .With("note: minimize marks the op that begins the backward pass");
  }
  return edit.Apply();
}

}  // namespace penstock::passes
