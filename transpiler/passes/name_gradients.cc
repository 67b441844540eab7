// Gives each gradient that is sent whole the name under which its pserver awaits it from this trainer.
//
//   plan    b: whole on pserver 0
//   before  (Y@GRAD=b@GRAD) = elementwise_add_grad(...) @backward(b, b@GRAD)
//   after   (Y@GRAD=b@GRAD.trainer_0) = elementwise_add_grad(...) @backward(b, b@GRAD.trainer_0)
//
// A sliced gradient keeps its name: its pieces are what is sent.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock {

Result<Program> NameGradients(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (const ParamPlacement& param : context.plan.params) {
    if (param.sliced()) continue;
    std::string sent = SentGradName(context.plan, param, 0, context.self.index);
    if (sent != param.grad) edit.main().RenameVar(param.grad, std::move(sent));
  }
  return edit.Apply();
}

}  // namespace penstock
