// Removes the optimizer, regularizer and learning-rate ops from the trainer, and the variables that only they
// used.
//
//   before  ... (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD) ; persist lr
//   after   ...
//
// Blocks of conditional learning-rate ops remain without an op that enters them, as in Fluid, because other
// blocks are referenced by index. Requires: the ops of the analysis are still there; SendGradients ran,
// because it may insert a send after one of them.
#include <algorithm>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"

namespace penstock::passes {

Result<Program> DropOptimizers(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const OpId id : context.analysis.server_ops) main.Remove(id);
  const std::vector<OpId>& kept = context.analysis.trainer_lr_ops;
  for (const OpId id : context.analysis.lr_ops) {
    if (std::find(kept.begin(), kept.end(), id) == kept.end()) main.Remove(id);
  }
  for (const std::string& name : context.analysis.server_vars) main.RemoveVar(name);
  return edit.Apply();
}

}  // namespace penstock::passes
