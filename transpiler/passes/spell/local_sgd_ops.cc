#include "transpiler/passes/spell/local_sgd_ops.h"

#include <set>
#include <utility>

#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

bool IsUneven(const plan::PlacementPlan& plan) { return plan.on_uneven != OnUneven::kNone; }

Op SubtractFromSnapshot(const plan::RingUse& param) {
  return MakeSubtractFromSnapshot(plan::SnapshotName(param.var), param.var);
}
std::vector<Op> AddUpOps(const plan::RingUse& param) {
  return {MakeAwaitComputation(param.var, OpRole::kOptimize),
          MakeAllReduce(param.var, param.ring, OpRole::kOptimize)};
}

// The share of the examples, for each element type of the parameters.
std::vector<Op> ShareOps(const plan::RankPlan& ranks, BlockEdit& body) {
  std::vector<Op> ops;
  std::set<DType> types;
  for (const plan::RingUse& use : ranks.reductions) {
    if (!types.insert(use.dtype).second) continue;
    const Var share = TensorVar(ShareName(use.dtype), use.dtype, Shape({1}));
    body.SetVar(share);
    ops.push_back(MakeShareOfCount(plan::kRankExamples, use.var, share.name));
  }
  ops.push_back(MakeCount(plan::kRankExamples, 0, OpRole::kOptimize));
  return ops;
}

}  // namespace

std::string ShareName(DType dtype) { return StrCat(plan::kRankShare, ".", DTypeName(dtype)); }

Var SnapshotVar(const plan::RingUse& param) {
  Var snapshot = TensorVar(plan::SnapshotName(param.var), param.dtype, param.shape);
  snapshot.persistable = true;
  snapshot.facts.stop_gradient = true;
  return snapshot;
}

std::vector<Op> SumUpdateOps(const plan::RingUse& param) {
  std::vector<Op> ops = {SubtractFromSnapshot(param)};
  for (Op& op : AddUpOps(param)) ops.push_back(std::move(op));
  return ops;
}

std::vector<Op> ApplyMeanUpdateOps(const plan::PlacementPlan& plan) {
  std::vector<Op> ops;
  const plan::RankPlan& ranks = plan.ranks;
  if (ranks.reductions.empty()) return ops;
  for (int ring = 0; ring < ranks.rings; ++ring) {
    ops.push_back(MakeAwaitRing(ranks.reductions.front().var, ring, OpRole::kOptimize));
  }
  const auto share = static_cast<float>(1.0 / plan.trainers);
  for (const plan::RingUse& use : ranks.reductions) {
    if (!IsUneven(plan)) ops.push_back(MakeScale(use.var, share).SetRole(OpRole::kOptimize));
    ops.push_back(SubtractFromSnapshot(use));
    ops.push_back(MakeCopy(use.var, plan::SnapshotName(use.var), OpRole::kOptimize));
  }
  return ops;
}

std::vector<std::string> FillAverageBlock(const plan::PlacementPlan& plan, const char* pass,
                                          BlockEdit& body) {
  std::vector<std::string> in_place;
  const auto append = [&](std::vector<Op> ops) {
    for (Op& op : ops) body.Append(std::move(op.SetMadeBy(pass)));
  };
  if (IsUneven(plan)) {
    in_place.emplace_back(plan::kRankExamples);
    append(ShareOps(plan.ranks, body));
  }
  for (const plan::RingUse& use : plan.ranks.reductions) {
    in_place.push_back(use.var);
    in_place.push_back(plan::SnapshotName(use.var));
    append({SubtractFromSnapshot(use)});
    if (IsUneven(plan)) append({MakeProduct(use.var, ShareName(use.dtype), OpRole::kOptimize)});
    append(AddUpOps(use));
  }
  append(ApplyMeanUpdateOps(plan));
  return in_place;
}

}  // namespace penstock::passes
