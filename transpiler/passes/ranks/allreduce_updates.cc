// Turns each updated parameter into its update since the snapshot and sums that over all ranks.
//
//   plan    reduce w on ring 0
//   before  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr)
//   after   (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr)
//           w = elementwise_sub(X=w@SNAPSHOT, Y=w)
//           w = c_sync_calc_stream(X=w)
//           w = c_allreduce_sum(X=w) {ring_id=0}
//
// Fluid declares the snapshot without an element type, and its type inference then makes the parameter bool;
// compat does the same.
#include <unordered_map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/local_sgd_ops.h"

namespace penstock::passes {
namespace {

constexpr char kAllreduceUpdates[] = "allreduce_updates";

Status Declare(BlockEdit& main, const plan::RingUse& use, const plan::Conventions& conventions) {
  Var snapshot = SnapshotVar(use);
  const Var* param = main.FindVar(use.var);
  if (param == nullptr) return PassError(kAllreduceUpdates, use.var, " is planned and not declared");
  if (main.FindVar(snapshot.name) != nullptr) return NameTaken(kAllreduceUpdates, snapshot.name);
  if (!conventions.snapshots_have_types) {
    Var typeless = *param;
    typeless.wire_bytes.clear();
    typeless.type->dtype = snapshot.type->dtype = DType::kBool;
    main.SetVar(std::move(typeless));
  }
  main.SetVar(std::move(snapshot));
  return OkStatus();
}

// The last op that writes the parameter: its optimizer, or an op that changes it afterwards.
OpId LastUpdate(const Block& main, const plan::TrainedParam& param) {
  const bool again = main.PositionOf(param.also_updated) > main.PositionOf(param.optimizer);
  return again ? param.also_updated : param.optimizer;
}

}  // namespace

Result<Program> AllreduceUpdates(const Program& in, const PassContext& context) {
  std::unordered_map<std::string, OpId> update_of;
  for (const plan::TrainedParam& param : context.analysis.params)
    update_of.emplace(param.param, LastUpdate(context.main.main(), param));
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::RingUse& use : context.plan.ranks.reductions) {
    const auto update = update_of.find(use.var);
    if (update == update_of.end() || main.FindOp(update->second) == nullptr) {
      return PassError(kAllreduceUpdates, "no op updates ", use.var, ", which is planned");
    }
    PENSTOCK_RETURN_IF_ERROR(Declare(main, use, context.plan.conventions()));
    for (Op& op : SumUpdateOps(use))
      main.InsertAfter(update->second, std::move(op.SetMadeBy(kAllreduceUpdates)));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
