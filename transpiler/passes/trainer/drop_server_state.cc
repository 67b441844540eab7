// Removes the optimizers' variables and their initial values from the trainer's startup program.
//
//   before  (Out=lr) = fill_constant() {value=0.1} ; (Out=w) = uniform_random()
//   after   (Out=w) = uniform_random()
#include <algorithm>
#include <unordered_set>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"

namespace penstock::passes {

Result<Program> DropServerState(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const auto& vars = context.analysis.server_vars;
  const std::unordered_set<std::string> dropped(vars.begin(), vars.end());
  for (const OpEntry& entry : in.main().ops()) {
    const auto& outputs = entry.op->outputs();
    const bool drop = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
      return std::any_of(slot.args.begin(), slot.args.end(),
                         [&](const std::string& name) { return dropped.contains(name); });
    });
    if (drop) main.Remove(entry.id);
  }
  for (const std::string& name : vars) main.RemoveVar(name);
  return edit.Apply();
}

}  // namespace penstock::passes
