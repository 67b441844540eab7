// Plans for jobs without pservers: the variables that all ranks exchange, and their rings.
#include <algorithm>
#include <iterator>
#include <utility>

#include "transpiler/plan/analyse_updates.h"
#include "transpiler/plan/exchanged.h"
#include "transpiler/plan/planner.h"
#include "transpiler/plan/row_policies.h"

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

// Plans the broadcasts of initial values that no earlier transpile has added; uses rings in turn.
Status PlanBroadcasts(const PlanRequest& request, RankPlan& ranks) {
  const ViewSet given =
      request.config.dialect == Dialect::kFluid18 ? ViewSet() : BroadcastIn(request.startup);
  for (const std::string& param : InitialParams(request.main, request.startup)) {
    if (given.contains(param)) continue;
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

Status AveragedAlready(std::string_view what, std::string_view param) {
  return InvalidArgument("E-parallel-twice", "plan: ranks average ", param,
                         " already, which cannot be combined with ", what, " in one program")
      .With("note: use one mode for all optimizers of a program");
}

// The gradients that ops of one backward pass complete.
struct BackwardPass {
  std::string exchanged;         // one that ranks reduce already; empty if there is none
  std::vector<RingUse> missing;  // the others
};

Result<std::vector<BackwardPass>> BackwardPasses(const Program& main, const ViewSet& exchanged) {
  std::vector<BackwardPass> passes(1);
  for (const OpEntry& entry : main.main().ops()) {
    if (!Has(entry.op->role(), OpRole::kBackward)) continue;
    if (Has(entry.op->role(), OpRole::kLoss)) passes.emplace_back();
    const auto pairs = entry.op->RolePairs();
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      if (IsDistributed(main, pair->first)) continue;
      if (exchanged.contains(pair->second)) {
        passes.back().exchanged = pair->second;
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(main, pair->second));
      passes.back().missing.push_back(std::move(use));
    }
  }
  return passes;
}

// Plans a reduction for each gradient that ranks do not exchange yet, in the order in which the backward pass
// completes them. If one op completes several, the last comes first.
Status PlanGradients(const Program& main, Dialect dialect, RankPlan& ranks) {
  const Exchanged earlier(main);
  const bool anew = dialect == Dialect::kFluid18;
  if (!anew && !earlier.updates.empty())
    return AveragedAlready("a reduction of gradients", *earlier.updates.begin());
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<BackwardPass> passes,
                            BackwardPasses(main, anew ? ViewSet() : earlier.gradients));
  std::string exchanged;
  for (BackwardPass& pass : passes) {
    if (!pass.exchanged.empty()) exchanged = pass.exchanged;
    if (!pass.exchanged.empty() && !pass.missing.empty()) {
      return InvalidArgument("E-parallel-twice", "plan: the program reduces ", pass.exchanged,
                             " over ranks already, but not ", pass.missing.front().var,
                             " of the same backward pass")
          .With("note: write all reductions of a backward pass yourself, or none");
    }
    std::ranges::move(pass.missing, std::back_inserter(ranks.reductions));
  }
  if (ranks.reductions.empty() && !exchanged.empty()) {
    return InvalidArgument("E-parallel-twice", "plan: the program reduces all its gradients over ranks ",
                           "already, the last of them ", exchanged);
  }
  if (ranks.reductions.empty()) {
    return InvalidArgument("E-plan-no-params",
                           "plan: no op completes a gradient of a parameter; call minimize before transpile");
  }
  DealRings(ranks);
  return OkStatus();
}

Status PlanUpdates(const Program& main, Dialect dialect, const Analysis& analysis, RankPlan& ranks) {
  const Exchanged earlier(main);
  const bool anew = dialect == Dialect::kFluid18;
  if (!anew && !earlier.gradients.empty()) {
    return InvalidArgument("E-parallel-twice", "plan: ranks reduce ", *earlier.gradients.begin(),
                           " already, which cannot be combined with local SGD in one program")
        .With("note: use one mode for all optimizers of a program");
  }
  for (const int position : analysis.update_order) {
    const std::string& param = analysis.params[static_cast<std::size_t>(position)].param;
    if (IsDistributed(main, param) || (!anew && earlier.updates.contains(param))) continue;
    PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(main, param));
    ranks.reductions.push_back(std::move(use));
  }
  if (ranks.reductions.empty() && !earlier.updates.empty()) {
    return InvalidArgument("E-parallel-twice", "plan: ranks average all parameters of the program already, ",
                           *earlier.updates.begin(), " first");
  }
  DealRings(ranks);
  return OkStatus();
}

// Programs of one startup program would count their steps in one variable.
Status RequireOwnSteps(const PlanRequest& request, Mode mode) {
  if (mode == Mode::kLocalSgd) return OkStatus();
  for (const OpEntry& entry : request.startup.main().ops()) {
    if (entry.op->made_by() != "count_local_steps") continue;
    return InvalidArgument(
               "E-parallel-twice",
               "plan: an earlier transpile with this startup program counts the steps of local SGD "
               "already, in ",
               entry.op->OutputName("Out"))
        .With(
            "note: average after each step (local_sgd_k_steps=1), or give each program a startup program and "
            "a "
            "scope of its own");
  }
  return OkStatus();
}

Result<Planned> Finished(const PlanRequest& request, Planned planned) {
  PENSTOCK_RETURN_IF_ERROR(RequireRowPolicies(request.main, planned.plan));
  PENSTOCK_RETURN_IF_ERROR(ValidatePlan(planned.plan));
  return planned;
}

}  // namespace

Result<Planned> PlanRanks(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  return Finished(request, std::move(out));
}

Result<Planned> PlanGradientSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  PENSTOCK_RETURN_IF_ERROR(PlanBroadcasts(request, out.plan.ranks));
  PENSTOCK_RETURN_IF_ERROR(PlanGradients(request.main, request.config.dialect, out.plan.ranks));
  return Finished(request, std::move(out));
}

Result<Planned> PlanDeviceSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  out.plan.ranks.rings = 1;
  PENSTOCK_RETURN_IF_ERROR(PlanGradients(request.main, request.config.dialect, out.plan.ranks));
  return Finished(request, std::move(out));
}

Result<Planned> PlanUpdateSums(const PlanRequest& request) {
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, RanksOf(request.config));
  PENSTOCK_RETURN_IF_ERROR(RequireOwnSteps(request, out.plan.mode));
  PENSTOCK_ASSIGN_OR_RETURN(out.analysis, AnalyseUpdates(request.main, request.config.dialect));
  PENSTOCK_RETURN_IF_ERROR(PlanBroadcasts(request, out.plan.ranks));
  PENSTOCK_RETURN_IF_ERROR(PlanUpdates(request.main, request.config.dialect, out.analysis, out.plan.ranks));
  return Finished(request, std::move(out));
}

}  // namespace penstock::plan
