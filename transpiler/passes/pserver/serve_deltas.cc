// Adds the op that waits for differences and maps each of them to the block that it starts.
//
//   after   listen_and_serv() {distributed_mode=3, optimize_blocks=[^1],
//                              grad_to_block_id=["w.block1.delta:1"]}
//
// Requires: AddDeltas ran, and its blocks are the last. As in Fluid, a geo pserver does not know its own
// index.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kServeDeltas[] = "serve_deltas";

}  // namespace

Result<Program> ServeDeltas(const Program& in, const PassContext& context) {
  Program out = in;
  const std::vector<plan::SliceRef>& slices = context.shares.SlicesOn(context.self.index);
  const int first = out.block_count() - static_cast<int>(slices.size());
  ServeSpec serve;
  serve.address = context.plan.pservers[static_cast<std::size_t>(context.self.index)];
  serve.pserver = -1;
  serve.trainers = context.plan.trainers;
  serve.mode = context.plan.server_mode;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const int block = first + static_cast<int>(i);
    const plan::ParamPlacement& param = context.plan.param(slices[i]);
    PENSTOCK_RETURN_IF_ERROR(
        RequireWrites(kServeDeltas, out, block, plan::ParamPieceName(param, slices[i].slice)));
    const std::string delta = plan::PieceDeltaName(param, slices[i].slice);
    serve.blocks.push_back({block});
    serve.grad_to_block.push_back(StrCat(delta, ":", block));
    if (!param.sparse) continue;
    serve.sparse_to_param.push_back(StrCat(delta, ":", plan::ParamPieceName(param, slices[i].slice)));
  }
  out.MutableBlock(0).Append(std::move(MakeListenAndServ(serve).SetMadeBy(kServeDeltas)));
  return out;
}

}  // namespace penstock::passes
