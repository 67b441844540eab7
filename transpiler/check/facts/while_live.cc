#include "transpiler/check/facts/while_live.h"

#include <algorithm>
#include <string>

#include "framework/ir/edit.h"

namespace penstock::check {
namespace {

bool IsWritten(const Program& program, const std::string& name) {
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      const std::vector<std::string> written = entry.op->OutputNames();
      if (std::ranges::find(written, name) != written.end()) return true;
    }
  }
  return false;
}

// The live-only block that `op` runs; 0 if `op` runs none.
int BlockWhileLive(const Program& program, const Op& op) {
  const auto* block = op.type() == "conditional_block" ? op.Get<BlockRef>("sub_block") : nullptr;
  if (block == nullptr || block->index < 1 || block->index >= program.block_count()) return 0;
  const std::string& condition = op.InputName("Cond");
  for (const OpEntry& entry : program.main().ops()) {
    const std::vector<std::string> written = entry.op->OutputNames();
    if (std::ranges::find(written, condition) == written.end()) continue;
    if (entry.op->type() != "cast") return 0;
    const std::string& lasting = entry.op->InputName("X");
    const Var* const var = program.main().FindVar(lasting);
    return var != nullptr && var->persistable && !IsWritten(program, lasting) ? block->index : 0;
  }
  return 0;
}

}  // namespace

std::optional<Program> WhileLive(const Program& program) {
  if (program.block_count() == 1) return std::nullopt;
  ProgramEdit edit(program);
  bool found = false;
  for (const OpEntry& entry : program.main().ops()) {
    const int inner = BlockWhileLive(program, *entry.op);
    if (inner == 0) continue;
    found = true;
    for (const auto& var : program.block(inner).vars()) edit.main().SetVar(*var);
    for (const OpEntry& moved : program.block(inner).ops()) {
      edit.main().InsertAfter(entry.id, *moved.op);
      edit.block(inner).Remove(moved.id);
    }
    edit.main().Remove(entry.id);
  }
  if (!found) return std::nullopt;
  Result<Program> made = edit.Apply();
  if (!made.ok()) return std::nullopt;  // a user's block that only looks live-only; checked as it is
  return *std::move(made);
}

}  // namespace penstock::check
