// Ends a step of local SGD: each parameter becomes the snapshot minus the mean of all ranks' updates, and
// that value is the next snapshot.
//
//   plan    {2 ranks, rings=1} reduce w on ring 0
//   after   w = c_sync_comm_stream(X=w) {ring_id=0}
//           w = scale(X=w) {scale=0.5}
//           w = elementwise_sub(X=w@SNAPSHOT, Y=w)
//           w@SNAPSHOT = assign(X=w)
//
// The step ends before the first op behind all updates that names a parameter, such as one that computes its
// norm. Without such an op, and in compat, as in Fluid, it ends with the block.
//
// Requires: AllreduceUpdates ran.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/local_sgd_ops.h"

namespace penstock::passes {
namespace {

Result<bool> NamesAny(const Program& program, const Op& op, const ViewSet& names) {
  std::vector<std::string> used = op.InputNames(), written = op.OutputNames();
  used.insert(used.end(), written.begin(), written.end());
  for (const int block : StartedBlocks(op)) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> outer, OuterNames(program, block));
    used.insert(used.end(), outer.begin(), outer.end());
  }
  return std::any_of(used.begin(), used.end(), [&](const std::string& name) { return names.contains(name); });
}

// The op before which the step ends; nullopt: the end of the block.
Result<std::optional<OpId>> FirstUser(const Program& in, const plan::RankPlan& ranks) {
  ViewSet averaged;
  for (const plan::RingUse& use : ranks.reductions) averaged.insert(use.var);
  const std::vector<OpEntry>& ops = in.main().ops();
  std::size_t behind = 0;  // the last sum
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const roles::CollectiveView exchange(*ops[i].op);
    const bool sums =
        exchange.kind() != roles::CollectiveKind::kNone && averaged.contains(exchange.variable());
    if (sums) behind = i + 1;
  }
  if (behind == 0) return std::optional<OpId>();
  for (std::size_t i = behind; i < ops.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool uses, NamesAny(in, *ops[i].op, averaged));
    if (uses) return std::optional(ops[i].id);
  }
  return std::optional<OpId>();
}

}  // namespace

Result<Program> ApplyMeanUpdate(const Program& in, const PassContext& context) {
  std::optional<OpId> user;
  if (context.plan.conventions().step_ends_before_users) {
    PENSTOCK_ASSIGN_OR_RETURN(user, FirstUser(in, context.plan.ranks));
  }
  ProgramEdit edit(in);
  for (Op& op : ApplyMeanUpdateOps(context.plan)) {
    Op made = std::move(op.SetMadeBy("apply_mean_update"));
    if (user) {
      edit.main().InsertBefore(*user, std::move(made));
    } else {
      edit.main().Append(std::move(made));
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
