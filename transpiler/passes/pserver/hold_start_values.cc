// Makes a pserver hold the variables that trainer 0 sends at the start and all trainers receive.
//
//   plan    start mean : f32[3] on pserver 1
//   before  (pserver 1)  listen_and_serv(...)
//   after   persist mean : f32[3]
//           listen_and_serv(...) {start_values=["mean"]}
//
// Requires: ServeGradients ran.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

Result<Program> HoldStartValues(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "hold_start_values";
  NameList held;
  Program out = in;
  for (const plan::StartValue& value : context.plan.start_values) {
    if (value.pserver != context.self.index) continue;
    held.push_back(value.name);
    Var var = TensorVar(value.name, value.dtype, value.shape);
    var.persistable = true;
    out.MutableBlock(0).SetVar(std::move(var));
  }
  if (held.empty()) return in;
  Block& globals = out.MutableBlock(0);
  if (globals.ops().empty() || !IsListenAndServ(*globals.ops().back().op)) {
    return PassError(kPass, "block 0 does not end with listen_and_serv");
  }
  Op serve = *globals.ops().back().op;
  SetStartValues(serve, held);
  globals.Replace(globals.ops().back().id, std::move(serve));
  return out;
}

}  // namespace penstock::passes
