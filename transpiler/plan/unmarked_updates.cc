#include "transpiler/plan/unmarked_updates.h"

#include <string>
#include <utility>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"

namespace penstock::plan {

std::optional<Program> WithMarkedUpdates(const Program& main) {
  std::optional<Program> out;
  ViewMap<std::string_view> gradients;  // of the parameters, as far as they have been computed
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    if (Has(op.role(), OpRole::kBackward)) {
      const auto* pairs = op.Get<std::vector<std::string>>(kRoleVarAttr);
      for (std::size_t i = 0; pairs != nullptr && i + 1 < pairs->size(); i += 2)
        gradients[(*pairs)[i]] = (*pairs)[i + 1];
    }
    const bool unmarked =
        op.role() == OpRole::kForward || (op.role() == OpRole::kOptimize && op.RolePairs().empty());
    if (!unmarked || gradients.empty() || !StartedBlocks(op).empty()) continue;
    for (const Slot& slot : op.outputs()) {
      for (const std::string& name : slot.args) {
        const auto gradient = gradients.find(name);
        const Var* var = gradient == gradients.end() ? nullptr : main.main().FindVar(name);
        if (var == nullptr || !var->persistable) continue;
        if (!out) out = main;
        Op marked = op;
        marked.SetRole(OpRole::kOptimize).SetRolePair(name, std::string(gradient->second));
        out->MutableBlock(0).Replace(entry.id, std::move(marked));
      }
    }
  }
  return out;
}

}  // namespace penstock::plan
