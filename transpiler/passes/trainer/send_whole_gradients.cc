// Passes each planned gradient to the trainer's communicator, right after the op that last writes it. The
// communicator splits it by `sections`, merges waiting gradients and sends in the background.
//
//   plan    w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   before  (Y@GRAD=w@GRAD) = mul_grad(...)
//   after   (Y@GRAD=w@GRAD) = mul_grad(...)
//           __control_var@0.send.w = send(X=w@GRAD) {epmap=[second server, first], sections=[7, 6],
//                                                    send_varnames=["w@GRAD.block0", "w@GRAD.block1"]}
//
// The slices are declared, as in Fluid, although no op of the program touches them. Changes nothing else.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/gradient_sends.h"
#include "transpiler/passes/spell/pieces.h"

namespace penstock::passes {

Result<Program> SendWholeGradients(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "send_whole_gradients";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const auto place = [&](const plan::ParamPlacement& param, OpId writer) {
    SendSpec send = SendOf(param, context, main);
    send.pieces = {param.grad};
    for (const plan::Slice& slice : param.slices) send.sections.push_back(slice.rows());
    send.messages = GradPieces(param);
    DeclareGradPieces(param, main);
    main.InsertAfter(writer, MakeSend(send).SetMadeBy(kPass));
  };
  PENSTOCK_RETURN_IF_ERROR(ForEachGradient(main, context, kPass, place));
  return edit.Apply();
}

}  // namespace penstock::passes
