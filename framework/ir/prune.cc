#include "framework/ir/prune.h"

#include <algorithm>
#include <set>
#include <utility>

namespace penstock {
namespace {

bool IsForTraining(Role role) {
  return Has(role, Role::kBackward) || Has(role, Role::kOptimize) || Has(role, Role::kLrSched);
}

// Keeps these ops in block 0, and the variables they name. Ops that start other blocks read what those read.
void KeepOnly(Program& program, std::vector<OpEntry> ops, const std::set<std::string>& also) {
  std::set<std::string> named = also;
  const auto name_all = [&](const Op& op) {
    for (std::string& name : op.InputNames()) named.insert(std::move(name));
    for (std::string& name : op.OutputNames()) named.insert(std::move(name));
  };
  for (const OpEntry& entry : ops) name_all(*entry.op);
  for (int b = 1; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) name_all(*entry.op);
  }
  Block& main = program.MutableBlock(0);
  main.SetOps(std::move(ops));
  std::set<std::string, std::less<>> gone;
  for (const VarRef& var : main.vars()) {
    if (!named.contains(var->name)) gone.insert(var->name);
  }
  main.RemoveVars(gone);
}

}  // namespace

Program CloneForTest(const Program& program) {
  Program out = program;
  std::vector<OpEntry> kept;
  for (const OpEntry& entry : program.main().ops()) {
    if (!IsForTraining(entry.op->role())) kept.push_back(entry);
  }
  KeepOnly(out, std::move(kept), {});
  for (int b = 0; b < out.block_count(); ++b) {
    Block& block = out.MutableBlock(b);
    const std::vector<OpEntry> ops = block.ops();
    for (const OpEntry& entry : ops) {
      if (entry.op->FindAttr("is_test") == nullptr) continue;
      Op op = *entry.op;
      op.Set("is_test", true);
      block.Replace(entry.id, std::move(op));
    }
  }
  return out;
}

Result<Program> PruneTo(const Program& program, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& targets) {
  const std::set<std::string> fed(feeds.begin(), feeds.end());
  std::set<std::string> needed;
  for (const std::string& target : targets) {
    if (program.main().FindVar(target) == nullptr) {
      return InvalidArgument("E-prune-target", "target ", target, " is no variable of the program");
    }
    needed.insert(target);
  }
  std::vector<OpEntry> kept;
  const std::vector<OpEntry>& ops = program.main().ops();
  for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
    const std::vector<std::string> written = entry->op->OutputNames();
    const bool wanted = std::any_of(written.begin(), written.end(), [&](const std::string& name) {
      return needed.contains(name) && !fed.contains(name);
    });
    if (!wanted) continue;
    for (std::string& name : entry->op->InputNames()) needed.insert(std::move(name));
    kept.push_back(*entry);
  }
  std::reverse(kept.begin(), kept.end());
  Program out = program;
  std::set<std::string> also = fed;
  also.insert(targets.begin(), targets.end());
  KeepOnly(out, std::move(kept), also);
  return out;
}

}  // namespace penstock
