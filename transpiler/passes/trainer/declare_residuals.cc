// Declares, for each parameter whose gradient is compressed with error feedback, what has not been sent of
// it.
//
//   plan    w: compression two_bit 0.5; b: compression fp16
//   after   persist w@RESIDUAL : f32[13, 2048]
//
// No op names it: what sends the gradient keeps it up to date. It lasts, and is saved with the trainer's
// state; it is whole, as the parameter is, so that it fits however the parameter is sliced.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/residuals.h"

namespace penstock::passes {

Result<Program> DeclareResiduals(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.compression.HasResidual()) edit.main().SetVar(ResidualVar(param));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
