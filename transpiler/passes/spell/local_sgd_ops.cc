#include "transpiler/passes/spell/local_sgd_ops.h"

#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Var SnapshotVar(const plan::RingUse& param) {
  Var snapshot = TensorVar(plan::SnapshotName(param.var), param.dtype, param.shape);
  snapshot.persistable = true;
  snapshot.facts.stop_gradient = true;
  return snapshot;
}

std::vector<Op> SumUpdateOps(const plan::RingUse& param) {
  return {MakeSubtractFromSnapshot(plan::SnapshotName(param.var), param.var),
          MakeAwaitComputation(param.var, Role::kOptimize),
          MakeAllReduce(param.var, param.ring, Role::kOptimize)};
}

std::vector<Op> ApplyMeanUpdateOps(const plan::PlacementPlan& plan) {
  std::vector<Op> ops;
  const plan::RankPlan& ranks = plan.ranks;
  if (ranks.reductions.empty()) return ops;
  for (int ring = 0; ring < ranks.rings; ++ring) {
    ops.push_back(MakeAwaitRing(ranks.reductions.front().var, ring, Role::kOptimize));
  }
  const auto share = static_cast<float>(1.0 / plan.trainers);
  for (const plan::RingUse& use : ranks.reductions) {
    ops.push_back(MakeScale(use.var, share).SetRole(Role::kOptimize));
    ops.push_back(MakeSubtractFromSnapshot(plan::SnapshotName(use.var), use.var));
    ops.push_back(MakeCopy(use.var, plan::SnapshotName(use.var), Role::kOptimize));
  }
  return ops;
}

}  // namespace penstock::passes
