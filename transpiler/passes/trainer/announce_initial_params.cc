// Tells the communicator, at the end of the trainer's startup program, that the initial values have arrived.
// Differences count from these values.
//
//   after   __control_var@0.send.param_init = send(X=param_init) {send_varnames=["param_init"]}
//
// The name is Fluid's; the variable is empty. Requires: ReceiveInitialParams ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> AnnounceInitialParams(const Program& in, const PassContext& context) {
  constexpr char kNotice[] = "param_init";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  if (main.FindVar(kNotice) != nullptr) return NameTaken("announce_initial_params", kNotice);
  const std::string done = plan::ControlName(StrCat("send.", kNotice));
  main.SetVar(ControlVar(kNotice));
  main.SetVar(ControlVar(done));
  main.Append(MakeNotice({kNotice}, {kNotice}, SenderId(context), done).SetMadeBy("announce_initial_params"));
  return edit.Apply();
}

}  // namespace penstock::passes
