// Begins a geo pserver's program: declares the slices it holds and the differences it receives.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   after   (pserver 0)  persist w.block1 : f32[6, 2048] ; var w.block1.delta : f32[6, 2048]
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/delta_vars.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/passes/spell/slice_facts.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> HoldParams(const Program& in, const PassContext& context) {
  Program out = in;
  CopyOrigin(context.main, out);
  Block& block = out.MutableBlock(0);
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    const plan::ParamPlacement& param = context.plan.param(ref);
    const Shape shape = param.ShapeOf(context.plan.slice(ref));
    block.SetVar(HeldPiece(context.plan, ref));
    block.SetVar(DeltaVar(param, plan::PieceDeltaName(param, ref.slice), shape));
  }
  return out;
}

}  // namespace penstock::passes
