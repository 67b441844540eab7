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

void CopyOrigin(const Program& from, Program& to) {
  ProgramMeta& meta = to.mutable_meta();
  meta.version = from.meta().version;
  meta.has_version_message = from.meta().has_version_message;
  meta.random_seed = from.meta().random_seed;
}

std::vector<ServerUpdate> UpdatesOn(const PassContext& context, int pserver) {
  const std::vector<SliceRef> slices = context.plan.SlicesOn(pserver);  // those of a parameter side by side
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < slices.size(); ++i) first.emplace(context.plan.param(slices[i]).param, i);
  std::vector<ServerUpdate> updates;
  for (const int position : context.analysis.update_order) {
    const TrainedParam& trained = context.analysis.params[static_cast<std::size_t>(position)];
    const auto it = first.find(trained.param);
    if (it == first.end()) continue;
    for (std::size_t i = it->second; i < slices.size() && slices[i].param == slices[it->second].param; ++i) {
      const bool again = i != it->second;
      if (again && context.plan.dialect == Dialect::kFluid18) break;
      updates.push_back({.at = slices[i],
                         .placement = &context.plan.param(slices[i]),
                         .trained = &trained,
                         .again = again});
    }
  }
  return updates;
}

ServerNames::ServerNames(const PassContext& context, int pserver) {
  const PlacementPlan& plan = context.plan;
  for (const SliceRef ref : plan.SlicesOn(pserver)) {
    const ParamPlacement& param = plan.param(ref);
    if (plan.dialect == Dialect::kFluid18 && pieces_.contains(param.param)) continue;
    pieces_[param.param].push_back(ParamPieceName(param, ref.slice));
    pieces_[param.grad].push_back(MergedGradName(param, ref.slice));
  }
  for (const ServerUpdate& update : UpdatesOn(context, pserver)) {
    if (!update.again) continue;
    for (const std::string& name : update.trained->written) {
      own_[name].push_back(OwnName(*update.placement, update.at.slice, name));
    }
  }
}

const std::string* ServerNames::Held(const std::string& name) const {
  const auto it = pieces_.find(name);
  return it == pieces_.end() ? nullptr : &it->second.front();
}

std::vector<std::string> ServerNames::All(const std::string& name) const {
  const auto pieces = pieces_.find(name);
  if (pieces != pieces_.end()) return pieces->second;
  std::vector<std::string> all = {name};
  const auto own = own_.find(name);
  if (own != own_.end()) all.insert(all.end(), own->second.begin(), own->second.end());
  return all;
}

std::vector<const TrainedParam*> TrainedOn(const PassContext& context, int pserver) {
  std::vector<const TrainedParam*> found;
  for (const ServerUpdate& update : UpdatesOn(context, pserver)) found.push_back(update.trained);
  for (const TrainedParam& param : context.analysis.params) {
    if (param.distributed) found.push_back(&param);
  }
  return found;
}

}  // namespace penstock
