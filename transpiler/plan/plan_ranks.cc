// Plans for jobs without pservers: the variables that all ranks exchange, and their rings.
#include "transpiler/plan/analyse_updates.h"
#include "transpiler/plan/planner.h"

namespace penstock::plan {
namespace {

Result<PlacementPlan> RanksOf(const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(config));
  PlacementPlan plan;
  PENSTOCK_ASSIGN_OR_RETURN(plan.mode, ResolveMode(config));
  plan.server_mode = ServerModeOf(plan.mode);
  plan.dialect = config.dialect;
  plan.trainers = config.trainers;
  plan.ranks.addresses = config.trainer_addresses;
  plan.ranks.rings = config.rings;
  plan.ranks.node_ranks = config.hierarchical && config.kind == Kind::kNccl2 ? config.node_ranks : 0;
  plan.ranks.average_every = config.local_sgd_k_steps;
  plan.on_uneven = config.on_uneven;
  return plan;
}

Result<RingUse> UseOf(const Program& program, const std::string& name) {
  const Var* var = program.main().FindVar(name);
  if (var == nullptr || !var->type) {
    return InvalidArgument("E-plan-undeclared", "plan: ", name,
                           " is to be exchanged between ranks and is not declared as a tensor in block 0");
  }
  if (!var->shape().IsKnown()) {
    return InvalidArgument("E-plan-shape", "plan: ", name,
                           " is to be exchanged between ranks and must have a known shape, not ",
                           var->shape());
  }
  return RingUse{.var = name,
                 .dtype = var->type->dtype,
                 .shape = var->shape(),
                 .sparse = var->kind == VarKind::kSelectedRows,
                 .ring = 0};
}

// Plans the broadcasts of initial values; uses rings in turn.
Status PlanBroadcasts(const PlanRequest& request, RankPlan& ranks) {
  for (const std::string& param : InitialParams(request.main, request.startup)) {
    PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(request.startup, param));
    use.ring = static_cast<int>(ranks.broadcasts.size()) % ranks.rings;
    ranks.broadcasts.push_back(std::move(use));
  }
  return OkStatus();
}

// Assigns rings in turn, from the last reduction to the first, as Fluid does.
void DealRings(RankPlan& ranks) {
  int next = 0;
  for (auto use = ranks.reductions.rbegin(); use != ranks.reductions.rend(); ++use) {
    use->ring = next++ % ranks.rings;
  }
}

bool IsDistributed(const Program& main, const std::string& param) {
  const Var* var = main.main().FindVar(param);
  return var != nullptr && var->facts.is_distributed;
}

// Plans a reduction for each gradient, in the order in which the backward pass completes them. If one op
// completes several, the last comes first.
Status PlanGradients(const Program& main, RankPlan& ranks) {
  for (const OpEntry& entry : main.main().ops()) {
    if (!Has(entry.op->role(), Role::kBackward)) continue;
    const auto pairs = entry.op->RolePairs();
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      if (IsDistributed(main, pair->first)) continue;
      PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(main, pair->second));
      ranks.reductions.push_back(std::move(use));
    }
  }
  if (ranks.reductions.empty()) {
    return InvalidArgument("E-plan-no-params",
                           "plan: no op completes a gradient of a parameter; call minimize before transpile");
  }
  DealRings(ranks);
  return OkStatus();
}

Status PlanUpdates(const Program& main, const Analysis& analysis, RankPlan& ranks) {
  for (const int position : analysis.update_order) {
    const std::string& param = analysis.params[static_cast<std::size_t>(position)].param;
    if (IsDistributed(main, param)) continue;
    PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(main, param));
    ranks.reductions.push_back(std::move(use));
  }
  DealRings(ranks);
  return OkStatus();
}

Result<Planned> Finished(Planned planned) {
  PENSTOCK_RETURN_IF_ERROR(ValidatePlan(planned.plan));
  return planned;
}

}  // namespace

Result<Planned> PlanRanks(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  return Finished(std::move(out));
}

Result<Planned> PlanGradientSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  PENSTOCK_RETURN_IF_ERROR(PlanBroadcasts(request, out.plan.ranks));
  PENSTOCK_RETURN_IF_ERROR(PlanGradients(request.main, out.plan.ranks));
  return Finished(std::move(out));
}

Result<Planned> PlanDeviceSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  out.plan.ranks.rings = 1;
  PENSTOCK_RETURN_IF_ERROR(PlanGradients(request.main, out.plan.ranks));
  return Finished(std::move(out));
}

Result<Planned> PlanUpdateSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  PENSTOCK_ASSIGN_OR_RETURN(out.analysis, AnalyseUpdates(request.main, request.config.dialect));
  PENSTOCK_RETURN_IF_ERROR(PlanBroadcasts(request, out.plan.ranks));
  PENSTOCK_RETURN_IF_ERROR(PlanUpdates(request.main, out.analysis, out.plan.ranks));
  return Finished(std::move(out));
}

}  // namespace penstock::plan
