// Declares the slices into which the communicator splits parameters and their differences.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   after   var w.block0 : f32[7, 2048] ; var w.block0.delta : f32[7, 2048]
//           var w.block1 : f32[6, 2048] ; var w.block1.delta : f32[6, 2048]
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/delta_vars.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> DeclareDeltaSlices(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (!param.sliced()) continue;
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const int slice = static_cast<int>(i);
      const Shape shape = param.ShapeOf(param.slices[i]);
      main.SetVar(TensorVar(plan::ParamPieceName(param, slice), param.dtype, shape));
      main.SetVar(DeltaVar(param, plan::PieceDeltaName(param, slice), shape));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
