// Gives each gradient that is sent, whole or in slices, the name under which its pserver awaits it from this
// trainer.
//
//   plan    b: whole on pserver 0; w: rows [0, 7) on pserver 1, rows [7, 13) on pserver 0
//   before  (Y@GRAD=b@GRAD) = elementwise_add_grad(...) @backward(b, b@GRAD)
//           [w@GRAD.block0, w@GRAD.block1] = split_byref(X=w@GRAD)
//   after   (Y@GRAD=b@GRAD.trainer_0) = elementwise_add_grad(...) @backward(b, b@GRAD.trainer_0)
//           [w@GRAD.block0.trainer_0, w@GRAD.block1.trainer_0] = split_byref(X=w@GRAD)
//
// Requires: SendGradients, which makes the slices, ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> NameGradients(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const plan::ParamPlacement& param : context.plan.params) {
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const int slice = static_cast<int>(i);
      std::string piece = plan::MergedGradName(param, slice);
      std::string sent = plan::SentGradName(context.plan, param, slice, context.self.index);
      if (sent != piece) edit.main().RenameVar(std::move(piece), std::move(sent));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
