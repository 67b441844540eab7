#include "tests/parity/transpile/difference_parts.h"

#include <algorithm>
#include <set>

namespace penstock::test {
namespace {

// Whether a pserver holds a part of the parameter.
bool Holds(const RoleSet& roles, int pserver, const std::string& param) {
  const auto is_param = [&](const plan::TablePlacement& table) { return table.table == param; };
  if (std::any_of(roles.plan.tables.begin(), roles.plan.tables.end(), is_param)) return true;  // a shard
  for (const plan::ParamPlacement& placement : roles.plan.params) {
    if (placement.param != param) continue;
    return std::any_of(placement.slices.begin(), placement.slices.end(),
                       [&](const plan::Slice& slice) { return slice.pserver == pserver; });
  }
  return false;
}

}  // namespace

bool IsLrOp(const Op& op) {
  return op.role() == OpRole::kLrSched || op.role() == (OpRole::kLrSched | OpRole::kOptimize);
}

void AddMentioned(const Program& main, const Op& op, std::set<std::string>& names) {
  for (const auto& mentioned : {op.InputNames(), op.OutputNames()})
    names.insert(mentioned.begin(), mentioned.end());
  const BlockRef* inner = op.Get<BlockRef>("sub_block");
  if (inner == nullptr) return;
  for (const OpEntry& entry : main.block(inner->index).ops()) AddMentioned(main, *entry.op, names);
}

bool IsTrainerMain(const RoleFile& file) { return !file.pserver && !file.startup; }

void ChangeOps(Program& program, int block, const std::function<bool(Op&)>& change) {
  const std::vector<OpEntry> ops = program.block(block).ops();
  for (const OpEntry& entry : ops) {
    Op op = *entry.op;
    if (change(op)) program.MutableBlock(block).Replace(entry.id, std::move(op));
  }
}

std::vector<OpId> UnneededLrOps(const CaseFolder& folder, const RoleSet& roles, int pserver) {
  std::vector<OpEntry> left;
  std::set<std::string> needed;
  for (const OpEntry& entry : folder.main.main().ops()) {
    const Op& op = *entry.op;
    if (IsLrOp(op)) left.push_back(entry);
    const auto pairs = op.RolePairs();
    if (op.role() != OpRole::kOptimize || pairs.empty() || !Holds(roles, pserver, pairs.front().first))
      continue;
    const auto inputs = op.InputNames();
    needed.insert(inputs.begin(), inputs.end());
  }
  for (bool again = true; again;) {
    again = std::erase_if(left, [&](const OpEntry& entry) {
              const auto written = entry.op->OutputNames();
              const bool keep = std::any_of(written.begin(), written.end(),
                                            [&](const std::string& name) { return needed.contains(name); });
              if (keep) AddMentioned(folder.main, *entry.op, needed);
              return keep;
            }) > 0;
  }
  std::vector<OpId> ids;
  for (const OpEntry& entry : left) ids.push_back(entry.id);
  return ids;
}

}  // namespace penstock::test
