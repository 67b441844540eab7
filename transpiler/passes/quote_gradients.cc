// Lets the ops of a pserver speak of a gradient that is sent whole as trainer 0 does.
//
//   before  (pserver) block 1 { sgd(Param=b, Grad=b@GRAD) @optimize(b, b@GRAD) }
//   after   (pserver) block 1 { sgd(Param=b, Grad=b@GRAD) @optimize(b, b@GRAD.trainer_0) }
//
// What is merged here keeps its name. In compat an op may name a gradient that is merged elsewhere; Fluid
// then means trainer 0's, which nobody sends. Requires: PlaceOptimizers ran.
#include <unordered_map>
#include <unordered_set>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock {

Result<Program> QuoteGradients(const Program& in, const PassContext& context) {
  std::unordered_set<std::string> merged;
  for (const SliceRef ref : context.plan.SlicesOn(context.self.index))
    merged.insert(context.plan.param(ref).grad);
  std::unordered_map<std::string, std::string> quoted;
  ProgramEdit edit(in);
  for (const ParamPlacement& param : context.plan.params) {
    const std::string sent = SentGradName(context.plan, param, 0, 0);
    if (param.sliced() || sent == param.grad) continue;
    quoted.emplace(param.grad, sent);
    if (merged.contains(param.grad) || in.main().FindVar(param.grad) == nullptr) continue;
    for (int block = 0; block < in.block_count(); ++block) edit.block(block).RenameVar(param.grad, sent);
  }
  for (int block = 1; block < in.block_count(); ++block) {
    for (const OpEntry& entry : in.block(block).ops()) {
      std::vector<std::string> pair = entry.op->GetOr(kRoleVarAttr, std::vector<std::string>());
      bool changed = false;
      for (std::string& name : pair) {
        const auto it = quoted.find(name);
        if (it == quoted.end()) continue;
        name = it->second;
        changed = true;
      }
      if (!changed) continue;
      Op copy = *entry.op;
      edit.block(block).Replace(entry.id, std::move(copy.Set(kRoleVarAttr, std::move(pair))));
    }
  }
  return edit.Apply();
}

}  // namespace penstock
