#include "transpiler/passes/spell/moved_ops.h"

#include <set>
#include <utility>

#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {
namespace {

std::vector<std::string> NamesOf(const Op& op) {
  std::vector<std::string> names = op.InputNames();
  for (std::string& name : op.OutputNames()) names.push_back(std::move(name));
  std::erase(names, "");
  return names;
}

}  // namespace

MovedVars VarsOfMoved(const Program& in, const ChooseOp& moves) {
  std::set<std::string> stay, move;
  for (const OpEntry& entry : in.main().ops()) {
    for (std::string& name : NamesOf(*entry.op)) (moves(*entry.op) ? move : stay).insert(std::move(name));
  }
  MovedVars vars;
  for (const std::string& name : move) {
    const Var* const var = in.main().FindVar(name);
    const bool own = var != nullptr && !var->persistable && !stay.contains(name);
    (own ? vars.own : vars.outside).push_back(name);
  }
  return vars;
}

const Op* MoveOps(const Program& in, const ChooseOp& moves, const MovedVars& vars, BlockEdit& from,
                  BlockEdit& to) {
  for (const std::string& name : vars.own) {
    to.SetVar(*in.main().FindVar(name));
    from.RemoveVar(name);
  }
  for (const OpEntry& entry : in.main().ops()) {
    if (!moves(*entry.op)) continue;
    if (HasBlocks(*entry.op)) return entry.op.get();
    to.Append(*entry.op);
    from.Remove(entry.id);
  }
  return nullptr;
}

OpId LastMoved(const Program& in, const ChooseOp& moves) {
  OpId last = OpId::kNone;
  for (const OpEntry& entry : in.main().ops()) {
    if (moves(*entry.op)) last = entry.id;
  }
  return last;
}

}  // namespace penstock::passes
