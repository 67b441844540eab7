#include "transpiler/plan/untrained.h"

#include <algorithm>

namespace penstock::plan {
namespace {

bool Reads(const Op& op, const std::string& name) {
  return std::ranges::any_of(op.inputs(), [&](const Slot& slot) {
    return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
  });
}

}  // namespace

// Fluid asks whether the parameter is trainable. The default dialect examines the ops instead: no op updates
// the parameter, and no op uses the variable that stands in the op's role pair as its gradient.
bool UntrainedFinder::IsOfUntrained(const Op& op) {
  const auto* pair = op.Get<std::vector<std::string>>(kRoleVarAttr);
  if (pair == nullptr || pair->size() < 2) return false;
  const std::string& param = pair->front();
  const std::string& grad = (*pair)[1];
  if (dialect_ == Dialect::kFluid18) {
    const Var* var = main_.FindVar(param);
    return var != nullptr && var->facts.is_parameter && !var->facts.trainable;
  }
  if (Reads(op, grad)) return false;  // most ops; avoids ReadBlock
  if (!is_read_) ReadBlock();
  return !used_.contains(grad) && !updated_.contains(param) && main_.FindVar(param) != nullptr &&
         main_.FindVar(grad) != nullptr;
}

void UntrainedFinder::ReadBlock() {
  is_read_ = true;
  for (const OpEntry& entry : main_.ops()) {
    for (const Slot& slot : entry.op->inputs()) used_.insert(slot.args.begin(), slot.args.end());
    for (const Slot& slot : entry.op->outputs()) {
      used_.insert(slot.args.begin(), slot.args.end());
      if (entry.op->role() == OpRole::kOptimize) updated_.insert(slot.args.begin(), slot.args.end());
    }
  }
}

}  // namespace penstock::plan
