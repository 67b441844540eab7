#include "tests/parity/transpile/reader_differences.h"

#include <algorithm>
#include <set>
#include <vector>

#include "framework/roles/views.h"
#include "tests/parity/transpile/difference_parts.h"

namespace penstock::test {
namespace {

bool IsUsers(const Op& op) {
  return op.role() == OpRole::kForward || op.role() == (OpRole::kForward | OpRole::kLoss);
}

// The user's first op after an update that uses the updated parameter; null if there is none.
const Op* FirstReader(const Program& main) {
  std::set<std::string> updated;
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    if (op.role() == OpRole::kOptimize && !op.RolePairs().empty()) {
      const std::vector<std::string> written = op.OutputNames();
      const std::string param = op.RolePairs().front().first;
      if (std::ranges::find(written, param) != written.end()) updated.insert(param);
    }
    if (!IsUsers(op)) continue;
    std::set<std::string> used;
    AddMentioned(main, op, used);
    if (std::ranges::any_of(used, [&](const std::string& name) { return updated.contains(name); }))
      return &op;
  }
  return nullptr;
}

}  // namespace

bool ReadsUpdatedParams(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return IsTrainerMain(file) && FirstReader(folder.main) != nullptr;
}

void ReadAfterReceives(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& program) {
  const Op& first = *FirstReader(folder.main);
  const std::vector<OpEntry> ops = program.main().ops();
  auto entry = std::ranges::find_if(ops, [&](const OpEntry& one) {
    return one.op->type() == first.type() && one.op->OutputNames() == first.OutputNames();
  });
  for (; entry != ops.end(); ++entry) {
    if (!IsUsers(*entry->op) || roles::CommOf(*entry->op) != roles::Comm::kNone) continue;
    program.MutableBlock(0).Remove(entry->id);
    program.MutableBlock(0).Append(*entry->op);
  }
}

}  // namespace penstock::test
