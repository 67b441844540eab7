#include "transpiler/passes/spell/server_copy.h"

#include <algorithm>

#include "framework/ir/mentions.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

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

bool ClipsTogether(const plan::TrainedParam& trained) {
  return trained.reads_shared || !trained.measures.empty();
}

Status RequireWrites(std::string_view pass, const Program& program, int block, std::string_view name) {
  if (block > 0 && block < program.block_count()) {
    const std::vector<OpEntry>& ops = program.block(block).ops();
    if (std::ranges::any_of(ops, [name](const OpEntry& entry) { return Writes(*entry.op, name); }))
      return OkStatus();
  }
  return PassError(pass, "block ", block, " does not write ", name);
}

Result<UpdateLayout> LayoutOf(std::string_view pass, const Program& program,
                              const std::vector<ServerUpdate>& updates) {
  UpdateLayout layout;
  int next = program.block_count() - static_cast<int>(updates.size());
  for (std::size_t i = 0; i < updates.size(); ++i) layout.updates.push_back(next + static_cast<int>(i));
  layout.merges = layout.updates;
  for (std::size_t i = updates.size(); i-- > 0;) {
    if (!ClipsTogether(*updates[i].trained)) continue;
    if (layout.shared < 0) layout.shared = --next;
    if (!updates[i].trained->measures.empty()) layout.merges[i] = --next;
  }
  for (std::size_t i = 0; i < updates.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(RequireWrites(pass, program, layout.updates[i],
                                           plan::ParamPieceName(*updates[i].placement, updates[i].at.slice)));
  }
  return layout;
}

ServerNames::ServerNames(const PassContext& context, int pserver) {
  const plan::PlacementPlan& plan = context.plan;
  for (const plan::SliceRef ref : context.shares.SlicesOn(pserver)) {
    const plan::ParamPlacement& param = plan.param(ref);
    if (!plan.conventions().updates_each_slice && pieces_.contains(param.param)) continue;
    pieces_[param.param].push_back(plan::ParamPieceName(param, ref.slice));
    pieces_[param.grad].push_back(plan::MergedGradName(param, ref.slice));
  }
  for (const ServerUpdate& update : context.shares.UpdatesOn(pserver)) {
    if (!update.again) continue;
    for (const std::string& name : update.trained->written) {
      own_[name].push_back(plan::OwnName(*update.placement, update.at.slice, name));
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

std::vector<std::string_view> ServerNames::Replaced() const {
  std::vector<std::string_view> names;
  for (const auto& [name, pieces] : pieces_) names.push_back(name);
  for (const auto& [name, own] : own_) names.push_back(name);
  return names;
}

std::vector<const plan::TrainedParam*> TrainedOn(const PassContext& context, int pserver) {
  std::vector<const plan::TrainedParam*> found;
  for (const ServerUpdate& update : context.shares.UpdatesOn(pserver)) found.push_back(update.trained);
  const std::vector<const plan::TrainedParam*>& tables = context.shares.distributed();
  found.insert(found.end(), tables.begin(), tables.end());
  return found;
}

}  // namespace penstock::passes
