// Multiplies the loss's gradient by this rank's share of all ranks' examples, so that the sum of all ranks'
// gradients is that of the mean over all of them, whatever the sizes of their batches.
//
//   before  loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//   after   loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//           @RANK_SHARE@ = c_share_of_elements(X=cost, Live=@RANK_LIVE@) @backward
//           loss@GRAD = elementwise_mul(X=loss@GRAD, Y=@RANK_SHARE@) @backward
//
// Live is 1, or 0 where the rank has no more examples and repeats a batch that does not count. What is
// counted is what the mean is taken over. Each rank's own loss stays the mean of its own batch.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kPass[] = "share_loss_gradient";

// What the loss whose gradient `grad` is the mean of; empty: it is no mean.
std::string ElementsOfMean(const Block& main, const std::string& grad) {
  for (const OpEntry& entry : main.ops()) {
    if (entry.op->type() != "mean") continue;
    if (StrCat(entry.op->OutputName("Out"), kGradSuffix) == grad) return entry.op->InputName("X");
  }
  return "";
}

}  // namespace

Result<Program> ShareLossGradient(const Program& in, const PassContext&) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const char* name : {plan::kRankLive, plan::kRankShare}) {
    if (main.FindVar(name) != nullptr) return NameTaken(kPass, name);
  }
  bool found = false;
  for (const OpEntry& entry : in.main().ops()) {
    const std::vector<std::string> made = entry.op->OutputNames();
    if (entry.op->role() != (Role::kBackward | Role::kLoss) || made.empty()) continue;
    const std::string& grad = made.front();
    const std::string counted = ElementsOfMean(in.main(), grad);
    const Var* loss = main.FindVar(grad);
    if (counted.empty() || loss == nullptr || !loss->type) {
      return InvalidArgument("E-pass-uneven-loss", kPass, ": ", grad,
                             " is not the gradient of layers.mean, so ",
                             "that the shares of ranks with unequal batches are unknown")
          .With("note: make the loss by layers.mean of what each example costs");
    }
    main.SetVar(TensorVar(plan::kRankShare, loss->type->dtype, Shape({1})));
    main.InsertAfter(entry.id, MakeShareOfElements(counted).SetMadeBy(kPass));
    main.InsertAfter(entry.id, MakeProduct(grad, plan::kRankShare).SetMadeBy(kPass));
    found = true;
  }
  if (!found) {
    return InvalidArgument("E-pass-no-loss", kPass, ": no op has the role backward|loss")
        .With("note: minimize marks the op that begins the backward pass");
  }
  main.SetVar(RankLiveVar());
  return edit.Apply();
}

}  // namespace penstock::passes
