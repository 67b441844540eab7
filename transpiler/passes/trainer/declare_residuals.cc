// Gives the send of each gradient that is compressed with error feedback a variable for the part it does not
// send.
//
//   plan    w: compression two_bit 0.5; b: compression fp16
//   before  __control_var@0.send.w = send(X=w@GRAD)
//   after   persist w@RESIDUAL : f32[13, 2048]
//           (ResidualOut=w@RESIDUAL, Out=__control_var@0.send.w) = send(X=w@GRAD, Residual=w@RESIDUAL)
//
// The variable is persistable, so that it is saved with the trainer's state. It has the shape of the whole
// parameter, so that it fits any slicing.
//
// Requires: SendGradients or SendWholeGradients ran.
#include <unordered_map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/residuals.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> DeclareResiduals(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  std::unordered_map<std::string, const plan::ParamPlacement*> by_control;
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (!param.compression.HasResidual()) continue;
    edit.main().SetVar(ResidualVar(param));
    by_control.emplace(plan::ControlName(StrCat("send.", param.param)), &param);
  }
  for (const OpEntry& entry : in.main().ops()) {
    if (!IsSend(*entry.op)) continue;
    const auto it = by_control.find(entry.op->OutputName("Out"));
    if (it == by_control.end()) continue;
    edit.main().Replace(entry.id, KeepingResidual(*entry.op, *it->second));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
