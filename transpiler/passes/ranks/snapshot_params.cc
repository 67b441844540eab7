// Makes the first snapshot of every parameter, at the end of the startup program. A snapshot is the last
// value that all ranks had in common.
//
//   plan    broadcast w on ring 0
//   after   persist w@SNAPSHOT : f32[13, 2048]
//           w@SNAPSHOT = assign(X=w)
//
// Requires: BroadcastParams ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/local_sgd_ops.h"

namespace penstock::passes {

Result<Program> SnapshotParams(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::RingUse& use : context.plan.ranks.broadcasts) {
    Var snapshot = SnapshotVar(use);
    if (main.FindVar(snapshot.name) != nullptr) return NameTaken("snapshot_params", snapshot.name);
    main.Append(MakeCopy(use.var, snapshot.name, OpRole::kForward).SetMadeBy("snapshot_params"));
    main.SetVar(std::move(snapshot));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
