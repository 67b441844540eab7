// Gives each slice that a pserver holds a block with the ops that update it: regularizers, then the
// optimizer, on the slice's variables. All these blocks have the same parent, so that they may run in
// parallel.
//
//   before  (main)    (ParamOut=w) = momentum(Param=w, Grad=w@GRAD, Velocity=w_velocity, LearningRate=lr)
//   after   (pserver) block 1 in 0 {
//                       (ParamOut=w.block1) = momentum(Param=w.block1, Grad=w@GRAD.block1, ...)
//                     }
//
// State keeps its name; state shaped like the parameter takes the slice's shape. A second slice of the same
// parameter has its own state: w_velocity.block2. Requires: DeclareSlices and PlaceLrSchedule ran.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/lr_ops.h"
#include "transpiler/passes/spell/update_block.h"

namespace penstock::passes {

Result<Program> PlaceOptimizers(const Program& in, const PassContext& context) {
  Program out = in;
  const int parent = out.block_count() - 1;
  const std::vector<ServerUpdate>& updates = context.shares.UpdatesOn(context.self.index);
  UpdateBlocks blocks(out, context);
  for (const ServerUpdate& update : updates) {
    PENSTOCK_RETURN_IF_ERROR(blocks.Add(SiteOf(context.plan, update), parent, "place_optimizers"));
  }
  // A server without work still has a block to run; in compat it has the schedule's, if there is one.
  const bool idle = updates.empty() && context.plan.tables.empty();
  if (idle && LrOpsOn(context, context.self.index).empty()) out.AddBlock(parent);
  return out;
}

}  // namespace penstock::passes
