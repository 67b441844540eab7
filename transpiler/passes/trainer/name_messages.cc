// Gives each gradient that the communicator sends the name under which its pserver awaits it from this
// trainer. The trainer's own variables keep their names.
//
//   before  send(X=w@GRAD) {send_varnames=["w@GRAD.block0", "w@GRAD.block1"]}
//   after   send(X=w@GRAD) {send_varnames=["w@GRAD.block0.trainer_1", "w@GRAD.block1.trainer_1"]}
//
// Requires: SendWholeGradients ran.
#include <unordered_map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> NameMessages(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  std::unordered_map<std::string, const plan::ParamPlacement*> by_control;
  for (const plan::ParamPlacement& param : context.plan.params) {
    by_control.emplace(plan::ControlName(StrCat("send.", param.param)), &param);
  }
  for (const OpEntry& entry : in.main().ops()) {
    if (!IsSend(*entry.op)) continue;
    const auto it = by_control.find(entry.op->OutputName("Out"));
    if (it == by_control.end()) continue;
    NameList messages;
    for (std::size_t i = 0; i < it->second->slices.size(); ++i) {
      messages.push_back(plan::ReceivedGradName(*it->second, static_cast<int>(i), context.self.index));
    }
    Op named = *entry.op;
    SetMessages(named, std::move(messages));
    edit.main().Replace(entry.id, std::move(named));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
