// Initializes every trainer's copy of a parameter with the parameter's value (DC-ASGD).
//
//   before  (Out=w) = uniform_random()
//   after   (Out=w) = uniform_random()
//           w.trainer_0_bak = assign(X=w) ; w.trainer_1_bak = assign(X=w)
//
// Requires: InitPserverSlices ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> InitBackups(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    const std::string piece = plan::ParamPieceName(context.plan.param(ref), ref.slice);
    for (int trainer = 0; trainer < context.plan.trainers; ++trainer) {
      edit.main().Append(MakeAssign(piece, plan::BackupName(piece, trainer)).SetMadeBy("init_backups"));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
