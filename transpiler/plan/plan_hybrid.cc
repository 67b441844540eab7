// Plans for jobs with both exchanges. Pservers keep sparse parameters, and dense parameters chosen for them,
// as in mode sync. Trainers all-reduce the gradients of the other dense parameters over their rings and
// update these alike.
#include <map>
#include <set>

#include "transpiler/plan/make_plan.h"
#include "transpiler/plan/planner.h"
#include "transpiler/plan/row_policies.h"
#include "transpiler/plan/start_values.h"

namespace penstock::plan {
namespace {

// Whether the parameter's gradients or values are exchanged by rows, so that pservers keep it.
bool IsSparse(const TrainedParam& param) { return param.sparse || param.prefetched || param.distributed; }

std::set<std::string> ChosenForPservers(const TranspileConfig& config) {
  std::set<std::string> out;
  for (const ExchangeChoice& choice : config.exchanges) {
    if (choice.way == DenseExchange::kPserver) out.insert(choice.param);
  }
  return out;
}

Result<RingUse> UseOf(const Block& block, const std::string& name) {
  const Var* var = block.FindVar(name);
  if (var != nullptr && var->HasShape() && var->shape().IsKnown()) {
    return RingUse{.var = name, .dtype = var->type->dtype, .shape = var->shape()};
  }
  return InvalidArgument("E-plan-shape", "plan: ", name,
                         " is to be exchanged between ranks and must be a tensor of known shape");
}

void DealRings(std::vector<RingUse>& uses, int rings) {
  int next = 0;
  for (RingUse& use : uses) use.ring = next++ % rings;
}

// Plans the all-reduce of `grads`. The last backward or clip op that writes a gradient completes it.
Status PlanReductions(const Program& main, const Analysis& analysis, const std::set<std::string>& grads,
                      RankPlan& ranks) {
  const std::set<OpId> clipping(analysis.clip_ops.begin(), analysis.clip_ops.end());
  std::map<std::string, int> completed;
  int position = 0;
  for (const OpEntry& entry : main.main().ops()) {
    ++position;
    if (!Has(entry.op->role(), OpRole::kBackward) && !clipping.contains(entry.id)) continue;
    for (const std::string& name : entry.op->OutputNames()) {
      if (grads.contains(name)) completed[name] = position;
    }
  }
  std::map<int, std::vector<std::string>> by_position;
  for (const auto& [name, at] : completed) by_position[at].push_back(name);
  for (const auto& [at, names] : by_position) {
    for (const std::string& name : names) {
      PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(main.main(), name));
      ranks.reductions.push_back(std::move(use));
    }
  }
  DealRings(ranks.reductions, ranks.rings);
  return OkStatus();
}

Status PlanBroadcasts(const Program& startup, const std::set<std::string>& dense, Analysis& analysis,
                      RankPlan& ranks) {
  std::set<std::string> names = dense;
  for (const StartedVar& started : analysis.start_values) names.insert(started.name);
  analysis.start_values.clear();  // the rings broadcast them
  for (const std::string& name : names) {
    PENSTOCK_ASSIGN_OR_RETURN(RingUse use, UseOf(startup.main(), name));
    ranks.broadcasts.push_back(std::move(use));
  }
  DealRings(ranks.broadcasts, ranks.rings);
  return OkStatus();
}

// Deep gradient compression exchanges parts of gradients, which c_allreduce_sum does not support.
Status RefuseDeepCompression(const Program& main) {
  for (const OpEntry& entry : main.main().ops()) {
    if (entry.op->type() != "dgc") continue;
    return InvalidArgument("E-plan-exchange", "plan: exchange dense=allreduce does not go with ",
                           "DGCMomentumOptimizer (op dgc of ", entry.op->InputName("Grad"),
                           "); use MomentumOptimizer, or choose mode nccl2");
  }
  return OkStatus();
}

}  // namespace

Result<Planned> PlanBothExchanges(const PlanRequest& request) {
  const TranspileConfig& config = request.config;
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(config));
  PENSTOCK_RETURN_IF_ERROR(RefuseDeepCompression(request.main));
  Planned out;
  PENSTOCK_ASSIGN_OR_RETURN(out.analysis, Analyse(request.ops, request.main, config.dialect, config.clip));
  FindStartValues(request.main, request.startup, config.others, out.analysis);
  const std::set<std::string> to_pservers = ChosenForPservers(config);
  std::set<std::string> dense, grads;
  for (const TrainedParam& param : out.analysis.params) {
    if (IsSparse(param) || to_pservers.contains(param.param)) continue;
    dense.insert(param.param);
    grads.insert(param.grad);
  }
  const bool asked = config.exchanges.empty();  // the user asked for it; kAuto did not choose
  if (asked && (dense.empty() || dense.size() == out.analysis.params.size())) {
    return InvalidArgument("E-plan-exchange",
                           "plan: exchange dense=allreduce, sparse=pserver needs parameters of ",
                           "both kinds; the program trains ", dense.size(), " dense and ",
                           out.analysis.params.size() - dense.size(), " sparse ones")
        .With(dense.empty() ? "note: let pservers update all" : "note: mode collective needs no pserver");
  }
  LeaveToTrainers(request.main, dense, out.analysis);
  RankPlan ranks{.addresses = config.trainer_addresses, .rings = config.rings};
  PENSTOCK_RETURN_IF_ERROR(PlanReductions(request.main, out.analysis, grads, ranks));
  PENSTOCK_RETURN_IF_ERROR(PlanBroadcasts(request.startup, dense, out.analysis, ranks));
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, MakePlan(request.main, out.analysis, config));
  out.plan.ranks = std::move(ranks);
  PENSTOCK_RETURN_IF_ERROR(RequireRowPolicies(request.main, out.plan));
  PENSTOCK_RETURN_IF_ERROR(ValidatePlan(out.plan, request.main));
  return out;
}

}  // namespace penstock::plan
