#include "transpiler/plan/table_updates.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::plan {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr char kStep[] = "sgd";

Names DistributedTables(const Block& main) {
  Names tables;
  for (const OpEntry& entry : main.ops()) {
    if (entry.op->type() != "lookup_table" || !entry.op->GetOr<bool>("is_distributed", false)) continue;
    tables.insert(entry.op->InputName("W"));
  }
  return tables;
}

// The ops that update one table, in program order.
struct TableUpdate {
  std::string grad;  // the gradient before regularization
  std::vector<OpId> ops;
  OpId optimizer = OpId::kNone;
  std::string rate;
};

std::map<std::string, TableUpdate> UpdatesOf(const OpRegistry& ops, const Block& main, const Names& tables) {
  std::map<std::string, TableUpdate> updates;
  for (const OpEntry& entry : main.ops()) {
    if (entry.op->role() != OpRole::kOptimize) continue;
    const auto pairs = entry.op->RolePairs();
    if (pairs.empty() || !tables.contains(pairs.front().first)) continue;
    TableUpdate& update = updates[pairs.front().first];
    if (update.ops.empty()) update.grad = pairs.front().second;
    update.ops.push_back(entry.id);
    const OpDef* def = ops.Find(entry.op->type());
    if (def == nullptr || !def->optimizer()) continue;
    update.optimizer = entry.id;
    update.rate = entry.op->InputName(def->optimizer()->rate_slot);
  }
  return updates;
}

bool IsPlain(const Block& main, const TableUpdate& update) {
  return update.optimizer == OpId::kNone || update.rate.empty() ||
         (update.ops.size() == 1 && main.FindOp(update.optimizer)->type() == kStep);
}

Op Step(const Op& optimizer, const std::string& table, const TableUpdate& update) {
  Op step(kStep);
  step.AddInput("Param", {table}).AddInput("Grad", {update.grad}).AddInput("LearningRate", {update.rate});
  step.AddOutput("ParamOut", {table}).SetRole(OpRole::kOptimize);
  for (const char* name : {kNameScopeAttr, kDeviceAttr}) {
    if (const auto* value = optimizer.Get<std::string>(name)) step.Set(name, *value);
  }
  return step.Set(kRoleVarAttr, std::vector<std::string>{table, update.grad})
      .SetLocation(optimizer.location());
}

void RemoveUnused(Program& program, Names names) {
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      for (const auto& used : {entry.op->InputNames(), entry.op->OutputNames()}) {
        for (const std::string& name : used) names.erase(name);
      }
    }
  }
  program.MutableBlock(0).RemoveVars(names);
}

// Removes the ops that only give `names` their initial values.
void RemoveStart(Program& startup, const Names& names) {
  std::vector<OpEntry> kept;
  for (const OpEntry& entry : startup.main().ops()) {
    const std::vector<std::string> written = entry.op->OutputNames();
    const bool goes =
        !written.empty() && std::all_of(written.begin(), written.end(),
                                        [&](const std::string& name) { return names.contains(name); });
    if (!goes) kept.push_back(entry);
  }
  startup.MutableBlock(0).SetOps(std::move(kept));
  RemoveUnused(startup, names);
}

}  // namespace

std::optional<SourcePair> WithFluidsTableUpdates(const OpRegistry& ops, const Program& main,
                                                 const Program& startup) {
  const Names tables = DistributedTables(main.main());
  if (tables.empty()) return std::nullopt;
  std::optional<SourcePair> out;
  Names unused;
  for (const auto& [table, update] : UpdatesOf(ops, main.main(), tables)) {
    if (IsPlain(main.main(), update)) continue;
    if (!out) out = SourcePair{main, startup};
    Block& block = out->main.MutableBlock(0);
    std::vector<OpEntry> kept;
    for (const OpEntry& entry : block.ops()) {
      if (std::find(update.ops.begin(), update.ops.end(), entry.id) == update.ops.end()) {
        kept.push_back(entry);
        continue;
      }
      for (const auto& names : {entry.op->InputNames(), entry.op->OutputNames()}) {
        for (const std::string& name : names) unused.insert(name);
      }
      if (entry.id != update.optimizer) continue;
      kept.push_back({entry.id, std::make_shared<const Op>(Step(*entry.op, table, update))});
    }
    block.SetOps(std::move(kept));
  }
  if (!out) return out;
  RemoveUnused(out->main, unused);
  Names gone;
  for (const std::string& name : unused) {
    if (out->main.main().FindVar(name) == nullptr) gone.insert(name);
  }
  RemoveStart(out->startup, gone);
  return out;
}

}  // namespace penstock::plan
