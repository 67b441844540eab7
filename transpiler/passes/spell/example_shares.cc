#include "transpiler/passes/spell/example_shares.h"

#include <set>
#include <utility>
#include <vector>

#include "framework/ir/edit.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/exchanged.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

// The variable of whose elements the loss is the mean, given the loss's gradient; empty if it is not a mean.
std::string ElementsOfMean(const Block& main, const std::string& grad) {
  for (const OpEntry& entry : main.ops()) {
    if (entry.op->type() != "mean") continue;
    if (StrCat(entry.op->OutputName("Out"), kGradSuffix) == grad) return entry.op->InputName("X");
  }
  return "";
}

// The op that starts the backward pass, the loss's gradient, and the variable of which the loss is the mean.
struct LossGradient {
  OpId op = OpId::kNone;
  std::string grad, counted;
};
Result<std::vector<LossGradient>> LossGradients(std::string_view pass, const Program& program) {
  std::vector<LossGradient> found;
  for (const OpEntry& entry : program.main().ops()) {
    const std::vector<std::string> made = entry.op->OutputNames();
    if (entry.op->role() != (OpRole::kBackward | OpRole::kLoss) || made.empty()) continue;
    LossGradient one{
        .op = entry.id, .grad = made.front(), .counted = ElementsOfMean(program.main(), made.front())};
    const Var* loss = program.main().FindVar(one.grad);
    if (one.counted.empty() || loss == nullptr || !loss->type) {
      return InvalidArgument("E-pass-uneven-loss", pass, ": ", one.grad,
                             " is not the gradient of layers.mean, so that the shares of ranks with unequal ",
                             "batches are unknown")
          .With("note: make the loss by layers.mean of what each example costs");
    }
    found.push_back(std::move(one));
  }
  if (found.empty()) {
    return InvalidArgument("E-pass-no-loss", pass, ": no op has the role backward|loss")
        .With("note: minimize marks the op that begins the backward pass");
  }
  return found;
}

}  // namespace

Result<std::string> CountedByLoss(std::string_view pass, const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LossGradient> losses, LossGradients(pass, program));
  return losses.front().counted;
}

Result<Program> MultiplyLossGradientByShare(std::string_view pass, const Program& in, float scale) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const std::set<OpId> earlier = plan::Exchanged(in).losses;
  for (const char* name : {plan::kRankLive, plan::kRankShare}) {
    if (earlier.empty() && main.FindVar(name) != nullptr) return NameTaken(pass, name);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LossGradient> losses, LossGradients(pass, in));
  for (const LossGradient& loss : losses) {
    if (earlier.contains(loss.op)) continue;
    main.SetVar(TensorVar(plan::kRankShare, main.FindVar(loss.grad)->type->dtype, Shape({1})));
    main.InsertAfter(loss.op, MakeShareOfElements(loss.counted, scale).SetMadeBy(std::string(pass)));
    main.InsertAfter(
        loss.op, MakeProduct(loss.grad, plan::kRankShare, OpRole::kBackward).SetMadeBy(std::string(pass)));
  }
  main.SetVar(RankLiveVar());
  return edit.Apply();
}

}  // namespace penstock::passes
