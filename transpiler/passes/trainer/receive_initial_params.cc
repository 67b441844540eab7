// Receives every parameter's initial value from the pservers, at the end of the trainer's startup program.
//
//   before  (Out=w) = uniform_random()
//   after   (Out=w) = uniform_random()
//           [w.block0, w.block1] = recv() {epmap=[second server, first]}
//           __control_var@0.fetch_barrier = fetch_barrier() {endpoints=[all]}
//           w = concat(X=[w.block0, w.block1])
//
// The trainer's own initializers stay, as in Fluid; the received values overwrite theirs. Prefetched tables
// are not received; in compat neither are those that Fluid mistakes for prefetched ones.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/tables.h"

namespace penstock::passes {

Result<Program> ReceiveInitialParams(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "receive_initial_params";
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  std::vector<Op> joins;
  const std::vector<std::string> tables =
      plan::ForgottenTables(context.main, context.plan.dialect, context.analysis);
  const std::set<std::string_view> forgotten(tables.begin(), tables.end());
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.prefetched || forgotten.contains(param.param)) continue;
    RecvSpec recv{.after = {},
                  .pieces = {},
                  .messages = {},
                  .addresses = context.plan.AddressesOf(param),
                  .trainer_id = context.self.index,
                  .role_pair = {}};
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      recv.pieces.push_back(plan::ParamPieceName(param, static_cast<int>(i)));
      if (param.sliced())
        main.SetVar(TensorVar(recv.pieces.back(), param.dtype, param.ShapeOf(param.slices[i])));
    }
    main.Append(MakeRecv(recv).SetMadeBy(kPass));
    if (param.sliced())
      joins.push_back(MakeJoinRows(recv.pieces, param.param, Role::kForward).SetMadeBy(kPass));
  }
  const std::string done = plan::ControlName("fetch_barrier");
  main.SetVar(ControlVar(done));
  main.Append(MakeStartupFetchBarrier(context.plan.pservers, context.self.index, done).SetMadeBy(kPass));
  for (Op& join : joins) main.Append(std::move(join));
  return edit.Apply();
}

}  // namespace penstock::passes
