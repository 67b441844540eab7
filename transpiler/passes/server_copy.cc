#include "transpiler/passes/server_copy.h"

#include "transpiler/plan/names.h"

namespace penstock {

Op ServerCopy(const Op& op, const OpRegistry& ops) {
  Op copy = op;
  copy.RemoveAttr(kCallstackAttr).Set(kNameScopeAttr, "/");
  if (copy.FindAttr(kRoleVarAttr) == nullptr) copy.Set(kRoleVarAttr, std::vector<std::string>());
  if (const OpDef* def = ops.Find(op.type())) {
    for (const SlotDef& slot : def->inputs()) {
      if (!copy.HasInputSlot(slot.name)) copy.AddInput(slot.name, {});
    }
  }
  return copy;
}

Var ServerCopy(const Var& var) {
  Var copy = var;
  copy.wire_bytes.clear();
  copy.facts = {};
  if (var.kind != VarKind::kStepScopes) copy.persistable = copy.has_persistable = true;
  return copy;
}

ServerNames::ServerNames(const PlacementPlan& plan, int pserver) {
  for (const SliceRef ref : plan.SlicesOn(pserver)) {
    const ParamPlacement& param = plan.param(ref);
    held_.emplace(param.param, ParamPieceName(param, ref.slice));
    held_.emplace(param.grad, MergedGradName(param, ref.slice));
  }
  for (const ParamPlacement& param : plan.params) {
    if (!param.sliced()) on_trainer_.emplace(param.grad, SentGradName(plan, param, 0, 0));
  }
}

const std::string* ServerNames::Held(const std::string& name) const {
  const auto it = held_.find(name);
  return it == held_.end() ? nullptr : &it->second;
}

const std::string& ServerNames::OnTrainer(const std::string& name) const {
  const auto it = on_trainer_.find(name);
  return it == on_trainer_.end() ? name : it->second;
}

std::vector<ServerUpdate> UpdatesOn(const PassContext& context, int pserver) {
  std::unordered_map<std::string_view, SliceRef> held;
  for (const SliceRef ref : context.plan.SlicesOn(pserver)) held.emplace(context.plan.param(ref).param, ref);
  std::vector<ServerUpdate> updates;
  for (const int position : context.analysis.update_order) {
    const TrainedParam& trained = context.analysis.params[static_cast<std::size_t>(position)];
    const auto it = held.find(trained.param);
    if (it == held.end()) continue;
    updates.push_back({.at = it->second, .placement = &context.plan.param(it->second), .trained = &trained});
  }
  return updates;
}

}  // namespace penstock
