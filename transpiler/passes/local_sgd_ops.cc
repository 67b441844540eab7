#include "transpiler/passes/local_sgd_ops.h"

#include "transpiler/passes/collective_ops.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock {

Var SnapshotVar(const RingUse& param) {
  Var snapshot = TensorVar(SnapshotName(param.var), param.dtype, param.shape);
  snapshot.persistable = true;
  snapshot.facts.stop_gradient = true;
  return snapshot;
}

std::vector<Op> SumUpdateOps(const RingUse& param) {
  return {MakeSubtractFromSnapshot(SnapshotName(param.var), param.var),
          MakeAwaitComputation(param.var, Role::kOptimize),
          MakeAllReduce(param.var, param.ring, Role::kOptimize)};
}

std::vector<Op> ApplyMeanUpdateOps(const PlacementPlan& plan) {
  std::vector<Op> ops;
  const RankPlan& ranks = plan.ranks;
  if (ranks.reductions.empty()) return ops;
  for (int ring = 0; ring < ranks.rings; ++ring) {
    ops.push_back(MakeAwaitRing(ranks.reductions.front().var, ring, Role::kOptimize));
  }
  const auto share = static_cast<float>(1.0 / plan.trainers);
  for (const RingUse& use : ranks.reductions) {
    ops.push_back(MakeScale(use.var, share).SetRole(Role::kOptimize));
    ops.push_back(MakeSubtractFromSnapshot(SnapshotName(use.var), use.var));
    ops.push_back(MakeCopy(use.var, SnapshotName(use.var), Role::kOptimize));
  }
  return ops;
}

}  // namespace penstock
