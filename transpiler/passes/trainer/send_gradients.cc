// Sends each planned gradient to its pservers, right after the op that last writes it.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   before  (Y@GRAD=w@GRAD) = mul_grad(...)
//   after   (Y@GRAD=w@GRAD) = mul_grad(...)
//           [w@GRAD.block0, w@GRAD.block1] = split_byref(X=w@GRAD) {sections=[7, 6]}
//           __control_var@0.send.w = send(X=[both]) {epmap=[second server, first]}
//
// Also declares the variable of the barrier that follows.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/gradient_sends.h"
#include "transpiler/passes/spell/pieces.h"

namespace penstock::passes {

Result<Program> SendGradients(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "send_gradients";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const auto place = [&](const plan::ParamPlacement& param, OpId writer) {
    SendSpec send = SendOf(param, context, main);
    send.pieces = GradPieces(param);
    OpId at = writer;
    if (param.sliced()) {
      DeclareGradPieces(param, main);
      at = main.InsertAfter(at, MakeSplitRows(param, param.grad, send.pieces).SetMadeBy(kPass));
    }
    main.InsertAfter(at, MakeSend(send).SetMadeBy(kPass));
  };
  PENSTOCK_RETURN_IF_ERROR(ForEachGradient(main, context, kPass, place));
  return edit.Apply();
}

}  // namespace penstock::passes
