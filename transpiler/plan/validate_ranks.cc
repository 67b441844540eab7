// Checks the part of a plan that is for ranks.
#include <set>

#include "transpiler/plan/plan.h"

namespace penstock::plan {
namespace {

Status ValidateRankAddresses(const std::vector<std::string>& addresses) {
  std::set<std::string> seen;
  for (const std::string& address : addresses) {
    if (seen.insert(address).second) continue;
    return InvalidArgument("E-plan-rank-dup", "plan: the address ", Quote(address), " is listed twice");
  }
  return OkStatus();
}

Status ValidateUses(std::string_view what, const std::vector<RingUse>& uses, int rings) {
  std::set<std::string> seen;
  for (const RingUse& use : uses) {
    if (use.ring < 0 || use.ring >= rings) {
      return InvalidArgument("E-plan-ring", "plan: ", what, " of ", use.var, " is on ring ", use.ring,
                             "; there are ", rings);
    }
    if (seen.insert(use.var).second) continue;
    return InvalidArgument("E-plan-ring-twice", "plan: ", what, " of ", use.var, " is planned twice");
  }
  return OkStatus();
}

}  // namespace

Status ValidateRanks(const PlacementPlan& plan) {
  const RankPlan& ranks = plan.ranks;
  PENSTOCK_RETURN_IF_ERROR(ValidateRankAddresses(ranks.addresses));
  if (static_cast<int>(ranks.addresses.size()) != plan.trainers) {
    return InvalidArgument("E-plan-rank-addresses", "plan: there are ", ranks.addresses.size(), " ranks for ",
                           plan.trainers, " trainers");
  }
  const bool beside_pservers =
      plan.mode == Mode::kHybrid || (plan.mode == Mode::kSync && plan.on_uneven != OnUneven::kNone);
  if (!beside_pservers && (!plan.pservers.empty() || !plan.params.empty())) {
    return InvalidArgument("E-plan-two-kinds", "plan: a job of ranks has no pservers and no slices");
  }
  const bool groups =
      ranks.node_ranks == 0 || (ranks.node_ranks > 1 && plan.trainers % ranks.node_ranks == 0);
  if (ranks.rings < 1 || ranks.average_every < 1 || !groups) {
    return InvalidArgument("E-plan-ranks", "plan: rings=", ranks.rings,
                           ", average_every=", ranks.average_every, ", node_ranks=", ranks.node_ranks,
                           " make no job of ", plan.trainers, " ranks");
  }
  PENSTOCK_RETURN_IF_ERROR(ValidateUses("the broadcast", ranks.broadcasts, ranks.rings));
  return ValidateUses("the reduction", ranks.reductions, ranks.rings);
}

}  // namespace penstock::plan
