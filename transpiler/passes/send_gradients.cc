// Sends each planned gradient to its pservers, right after the op that last writes it.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   before  (Y@GRAD=w@GRAD) = mul_grad(...)
//   after   (Y@GRAD=w@GRAD) = mul_grad(...)
//           [w@GRAD.block0.trainer_0, w@GRAD.block1.trainer_0] = split_byref(X=w@GRAD) {sections=[7, 6]}
//           __control_var@0.send.w = send(X=[both]) {epmap=[second server, first]}
//
// Requires: NameGradients ran. Changes nothing else.
#include "framework/ir/edit.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock {
namespace {

constexpr char kPass[] = "send_gradients";

NameList DeclarePieces(BlockEdit& main, const ParamPlacement& param, const PassContext& context) {
  NameList pieces;
  for (std::size_t i = 0; i < param.slices.size(); ++i) {
    pieces.push_back(SentGradName(context.plan, param, static_cast<int>(i), context.self.index));
    Var piece = TensorVar(pieces.back(), param.dtype, param.ShapeOf(param.slices[i]));
    if (param.sparse) piece.kind = VarKind::kSelectedRows;
    main.SetVar(std::move(piece));
  }
  return pieces;
}

}  // namespace

Result<Program> SendGradients(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  // Fluid puts each send right behind the writer, so of two gradients of one writer the later stands first.
  const std::vector<int> order(context.plan.send_order.rbegin(), context.plan.send_order.rend());
  for (const int position : order) {
    const ParamPlacement& param = context.plan.params[static_cast<std::size_t>(position)];
    const std::string grad =
        param.sliced() ? param.grad : SentGradName(context.plan, param, 0, context.self.index);
    // The last writer, because a gradient summed over several uses is written more than once.
    const std::optional<OpId> writer = main.LastWriter(grad);
    if (!writer) return PassError(kPass, "no op writes ", grad, ", the gradient planned for ", param.param);
    OpId at = *writer;
    SendSpec send{.pieces = {grad},
                  .addresses = context.plan.SendAddressesOf(param, context.self.index),
                  .trainer_id = context.plan.dialect == Dialect::kFluid18 ? 0 : context.self.index,
                  .param = param.param,
                  .grad = grad,
                  .done = ControlName(StrCat("send.", param.param))};
    if (param.sliced()) {
      send.pieces = DeclarePieces(main, param, context);
      at = main.InsertAfter(at, MakeSplitRows(param, grad, send.pieces).SetMadeBy(kPass));
    }
    main.SetVar(ControlVar(send.done));
    main.InsertAfter(at, MakeSend(send).SetMadeBy(kPass));
  }
  return edit.Apply();
}

}  // namespace penstock
