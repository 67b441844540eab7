#include "transpiler/plan/exchanged.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "framework/roles/collective_views.h"

namespace penstock::plan {
namespace {

using roles::CollectiveKind;

// Passes that exchange gradients, under other names too, and passes that average parameters.
constexpr std::string_view kOfGradients[] = {"accumulate_gradients", "adasum_gradients",
                                             "allreduce_gradients", "halve_gradients"};
constexpr std::string_view kOfUpdates[] = {"allreduce_updates", "average_adaptively", "average_every"};

template <std::size_t N>
bool IsMadeBy(const Op& op, const std::string_view (&passes)[N]) {
  return std::find(std::begin(passes), std::end(passes), op.made_by()) != std::end(passes);
}

void AddNames(const Op& op, ViewSet& names) {
  for (const auto* slots : {&op.inputs(), &op.outputs()}) {
    for (const Slot& slot : *slots) names.insert(slot.args.begin(), slot.args.end());
  }
}

bool CompletesOneOf(const Op& op, const ViewSet& gradients) {
  const auto* pairs = op.Get<std::vector<std::string>>(kRoleVarAttr);
  for (std::size_t i = 1; pairs != nullptr && i < pairs->size(); i += 2) {
    if (gradients.contains((*pairs)[i])) return true;
  }
  return false;
}

}  // namespace

Exchanged::Exchanged(const Program& main) {
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    const bool reduces = roles::CollectiveView(op).kind() != CollectiveKind::kNone;
    if (IsMadeBy(op, kOfGradients) || (reduces && Has(op.role(), OpRole::kBackward))) AddNames(op, gradients);
    if (IsMadeBy(op, kOfUpdates)) AddNames(op, updates);
  }
  if (gradients.empty()) return;
  OpId loss = OpId::kNone;
  for (const OpEntry& entry : main.main().ops()) {
    if (entry.op->role() == (OpRole::kBackward | OpRole::kLoss)) loss = entry.id;
    if (Has(entry.op->role(), OpRole::kBackward) && CompletesOneOf(*entry.op, gradients)) losses.insert(loss);
  }
}

ViewSet BroadcastIn(const Program& startup) {
  ViewMap<bool> last;  // whether a broadcast wrote the variable last
  for (const OpEntry& entry : startup.main().ops()) {
    if (entry.op->type() == "c_sync_comm_stream" || entry.op->type() == "c_sync_calc_stream") continue;
    const bool gives = roles::CollectiveView(*entry.op).kind() == CollectiveKind::kBroadcast;
    for (const Slot& slot : entry.op->outputs()) {
      for (const std::string& name : slot.args) last[name] = gives;
    }
  }
  ViewSet given;
  for (const auto& [name, gives] : last) {
    if (gives) given.insert(name);
  }
  return given;
}

}  // namespace penstock::plan
