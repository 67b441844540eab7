// Declares, for each parameter, the variable that trainers send: the difference since the last send.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   after   var w.delta : f32[13, 2048]
//
// It is selected rows if the parameter's gradients are sparse. The communicator fills it.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/delta_vars.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> DeclareDeltas(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::ParamPlacement& param : context.plan.params) {
    edit.main().SetVar(DeltaVar(param, plan::DeltaName(param), param.shape));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
