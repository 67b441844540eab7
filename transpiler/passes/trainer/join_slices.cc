// Joins the received slices of each parameter.
//
//   before  [w.block0, w.block1] = recv(...)
//   after   the same, and at the end of the block
//           w = concat(X=[w.block0, w.block1]) {axis=0}
//
// Requires: ReceiveParams ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> JoinSlices(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (!param.sliced() || param.prefetched) continue;
    NameList pieces;
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      pieces.push_back(plan::ParamPieceName(param, static_cast<int>(i)));
    }
    edit.main().Append(MakeJoinRows(pieces, param.param, OpRole::kDist).SetMadeBy("join_slices"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
