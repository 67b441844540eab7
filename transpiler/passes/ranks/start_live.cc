// Makes this rank's examples count from the first step on, at the end of the startup program, unless it does
// already.
//
//   after   persist @RANK_LIVE@ : f32[1]
//           @RANK_LIVE@ = fill_constant() {shape=[1l], value=1.0}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> StartLive(const Program& in, const PassContext&) {
  constexpr char kPass[] = "start_live";
  for (const OpEntry& entry : in.main().ops()) {  // of another program of the same startup program
    if (entry.op->made_by() == kPass) return in;
  }
  ProgramEdit edit(in);
  if (edit.main().FindVar(plan::kRankLive) != nullptr) return NameTaken(kPass, plan::kRankLive);
  edit.main().SetVar(RankLiveVar());
  edit.main().Append(MakeFloat(plan::kRankLive, 1.0f, OpRole::kForward).SetMadeBy(kPass));
  return edit.Apply();
}

}  // namespace penstock::passes
