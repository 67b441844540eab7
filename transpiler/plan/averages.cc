#include "transpiler/plan/averages.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "framework/ir/mentions.h"

namespace penstock::plan {
namespace {

using Views = std::set<std::string_view>;

bool AnyIn(const std::vector<Slot>& slots, const Views& names) {
  return std::ranges::any_of(slots, [&](const Slot& slot) {
    return std::ranges::any_of(slot.args, [&](const std::string& name) { return names.contains(name); });
  });
}

void Note(const std::vector<Slot>& slots, Views& names) {
  for (const Slot& slot : slots) names.insert(slot.args.begin(), slot.args.end());
}

// The ops of the update on which the parameter depends, in this or in later steps.
std::set<OpId> Contributing(const Block& main, const TrainedParam& param) {
  std::set<OpId> contributing;
  Views needed = {param.param};
  for (std::size_t before = 1; before != contributing.size();) {
    before = contributing.size();
    for (auto id = param.server_ops.rbegin(); id != param.server_ops.rend(); ++id) {
      const Op& op = *main.FindOp(*id);
      if (!AnyIn(op.outputs(), needed) || !contributing.insert(*id).second) continue;
      Note(op.inputs(), needed);
    }
  }
  return contributing;
}

// The ops of the parameter that trainers can run on what they receive.
std::set<OpId> Following(const Block& main, const TrainedParam& param) {
  const std::set<OpId> contributing = Contributing(main, param);
  std::set<OpId> following;
  Views on_pservers = {param.grad};
  for (const OpId id : contributing) Note(main.FindOp(id)->outputs(), on_pservers);
  on_pservers.erase(param.param);
  const int updated = std::max(main.PositionOf(param.optimizer), main.PositionOf(param.also_updated));
  for (const OpId id : param.server_ops) {
    if (contributing.contains(id)) continue;
    const Op& op = *main.FindOp(id);
    if (main.PositionOf(id) > updated && !AnyIn(op.inputs(), on_pservers)) {
      following.insert(id);
    } else {
      Note(op.outputs(), on_pservers);
    }
  }
  return following;
}

}  // namespace

void KeepAverages(const Block& main, Analysis& analysis) {
  std::set<OpId> kept;
  for (TrainedParam& param : analysis.params) {
    if (param.sparse || param.optimizer == OpId::kNone) continue;
    const std::set<OpId> following = Following(main, param);
    if (following.empty()) continue;
    std::erase_if(param.server_ops, [&](OpId id) { return following.contains(id); });
    kept.insert(following.begin(), following.end());
    param.written.clear();
    for (const OpId id : param.server_ops) {
      for (std::string& name : main.FindOp(id)->OutputNames()) {
        if (name != param.param && name != param.grad) param.written.insert(std::move(name));
      }
    }
  }
  std::erase_if(analysis.server_ops, [&](OpId id) { return kept.contains(id); });
}

}  // namespace penstock::plan
