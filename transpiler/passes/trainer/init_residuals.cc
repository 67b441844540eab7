// Initializes the residuals of compression to 0, at the end of the startup program.
//
//   plan    w: compression two_bit 0.5; b: compression fp16
//   after   persist w@RESIDUAL : f32[13, 2048]
//           w@RESIDUAL = fill_constant() {shape=[13l, 2048l], value=0.0}
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/pieces.h"
#include "transpiler/passes/spell/residuals.h"

namespace penstock::passes {

Result<Program> InitResiduals(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (!param.compression.HasResidual()) continue;
    PENSTOCK_RETURN_IF_ERROR(RequireFreeName(in, param.param, ResidualName(param.param)));
    main.SetVar(ResidualVar(param));
    main.Append(MakeEmptyResidual(param).SetMadeBy("init_residuals"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
