// Gives each slice that a geo pserver holds a block that adds the arriving differences to it.
//
//   after   block 1 in 0 { w.block1 = sum(X=[w.block1, w.block1.delta]) }
//
// Requires: HoldParams ran.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> AddDeltas(const Program& in, const PassContext& context) {
  Program out = in;
  const int parent = out.block_count() - 1;
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    const plan::ParamPlacement& param = context.plan.param(ref);
    const std::string piece = plan::ParamPieceName(param, ref.slice);
    Op add = MakeSum({piece, plan::PieceDeltaName(param, ref.slice)}, piece);
    out.AddBlock(parent).Append(std::move(add.SetMadeBy("add_deltas")));
  }
  return out;
}

}  // namespace penstock::passes
