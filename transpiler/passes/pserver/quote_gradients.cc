// Replaces the name of each gradient that is sent whole, in the role pairs of a pserver's ops, by trainer 0's
// name for it.
//
//   before  (pserver) block 1 { sgd(Param=b, Grad=b@GRAD) @optimize(b, b@GRAD) }
//   after   (pserver) block 1 { sgd(Param=b, Grad=b@GRAD) @optimize(b, b@GRAD.trainer_0) }
//
// The merged gradient itself keeps its name. In compat an op may name a gradient that another pserver merges;
// Fluid then uses trainer 0's name for it, which no trainer sends here. Requires: PlaceOptimizers ran.
#include <optional>
#include <string_view>
#include <unordered_set>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

// The name under which trainer 0 sends the gradient, if it sends it whole and under another one.
std::optional<std::string> Quoted(const std::string& grad, const PassContext& context) {
  const plan::ParamPlacement* param = context.shares.OfGrad(grad);
  if (param == nullptr || param->sliced()) return std::nullopt;
  std::string sent = plan::SentGradName(context.plan, *param, 0, 0);
  if (sent == grad) return std::nullopt;
  return sent;
}

}  // namespace

Result<Program> QuoteGradients(const Program& in, const PassContext& context) {
  std::unordered_set<std::string_view> merged;
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index))
    merged.insert(context.plan.param(ref).grad);
  ProgramEdit edit(in);
  for (const VarRef& var : in.main().vars()) {
    if (merged.contains(var->name)) continue;
    const std::optional<std::string> quoted = Quoted(var->name, context);
    if (!quoted) continue;
    for (int block = 0; block < in.block_count(); ++block) edit.block(block).RenameVar(var->name, *quoted);
  }
  for (int block = 1; block < in.block_count(); ++block) {
    for (const OpEntry& entry : in.block(block).ops()) {
      const auto* pair = entry.op->Get<std::vector<std::string>>(kRoleVarAttr);
      if (pair == nullptr) continue;
      std::optional<std::vector<std::string>> changed;
      for (std::size_t i = 0; i < pair->size(); ++i) {
        std::optional<std::string> quoted = Quoted((*pair)[i], context);
        if (!quoted) continue;
        if (!changed) changed = *pair;
        (*changed)[i] = *std::move(quoted);
      }
      if (!changed) continue;
      Op copy = *entry.op;
      copy.Set(kRoleVarAttr, *std::move(changed));
      edit.block(block).Replace(entry.id, std::move(copy));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
