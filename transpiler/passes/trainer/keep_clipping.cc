// Makes clipping part of the backward pass, so that it stays on the trainer and comes before the send.
//
//   before  (Out=w@CLIPPED) = clip(X=w@GRAD) {max=1.0} @optimize(w, w@CLIPPED)
//   after   (Out=w@CLIPPED) = clip(X=w@GRAD) {max=1.0} @backward(w, w@CLIPPED)
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"

namespace penstock::passes {

Result<Program> KeepClipping(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const OpId id : context.analysis.clip_ops) {
    const Op* op = main.FindOp(id);
    if (op == nullptr) return PassError("keep_clipping", "an op of the analysis is gone");
    Op kept = *op;
    kept.SetRole(OpRole::kBackward);
    main.Replace(id, std::move(kept));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
