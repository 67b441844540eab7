// Adds the op that waits for gradients and maps each of them to the block that it starts.
//
//   after   (block 0)  listen_and_serv(X=[b@GRAD, w@GRAD.block1]) {optimize_blocks=[^1, ^2],
//                                                                  grad_to_block_id=["b@GRAD:1",
//                                                                  "w@GRAD.block1:2"]}
//
// Requires: PlaceOptimizers ran, and its blocks are the last.
#include "framework/ir/mentions.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/lr_ops.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kServeGradients[] = "serve_gradients";

// Whether the update reads the merged gradient itself; a regularizer may have made it dense.
bool ReadsMerged(const ServerUpdate& update, const Program& main) {
  return Reads(*main.main().FindOp(update.trained->optimizer), update.trained->grad);
}

// Blocks in the order in which they run: measuring, common values, updates.
std::vector<int> BlocksIn(const UpdateLayout& layout) {
  std::vector<int> blocks;
  for (const int block : layout.merges) {
    if (block < layout.shared) blocks.push_back(block);
  }
  if (layout.shared >= 0) blocks.push_back(layout.shared);
  blocks.insert(blocks.end(), layout.updates.begin(), layout.updates.end());
  return blocks;
}

}  // namespace

Result<Program> ServeGradients(const Program& in, const PassContext& context) {
  Program out = in;
  const std::vector<ServerUpdate>& updates = context.shares.UpdatesOn(context.self.index);
  PENSTOCK_ASSIGN_OR_RETURN(const UpdateLayout layout, LayoutOf(kServeGradients, out, updates));
  ServeSpec serve;
  serve.address = context.plan.pservers[static_cast<std::size_t>(context.self.index)];
  serve.pserver = context.self.index;
  serve.trainers = context.plan.trainers;
  serve.mode = context.plan.server_mode;
  if (!LrOpsOn(context, context.self.index).empty()) {
    serve.lr_block = 1;
    serve.blocks.push_back({serve.lr_block});
  }
  for (const int block : BlocksIn(layout)) serve.blocks.push_back({block});
  // Lists the empty block that PlaceOptimizers made.
  if (serve.blocks.empty() && context.plan.tables.empty()) serve.blocks.push_back({out.block_count() - 1});
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const ServerUpdate& update = updates[i];
    const std::string grad = plan::MergedGradName(*update.placement, update.at.slice);
    serve.grad_to_block.push_back(StrCat(grad, ":", layout.merges[i]));
    if (update.trained->sparse && ReadsMerged(update, context.main)) {
      serve.sparse_to_param.push_back(
          StrCat(grad, ":", plan::ParamPieceName(*update.placement, update.at.slice)));
    }
  }
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    serve.inputs.push_back(plan::MergedGradName(context.plan.param(ref), ref.slice));
  }
  out.MutableBlock(0).Append(std::move(MakeListenAndServ(serve).SetMadeBy(kServeGradients)));
  return out;
}

}  // namespace penstock::passes
