#include "transpiler/pipeline/data_parallel.h"

#include <bit>
#include <set>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/op/conform.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/pipeline/pass_manager.h"
#include "transpiler/plan/exchanged.h"
#include "transpiler/plan/planner.h"

namespace penstock {
namespace {

Status RequireNoCollectives(const Program& main) {
  for (const OpEntry& entry : main.main().ops()) {
    if (roles::CollectiveView(*entry.op).kind() == roles::CollectiveKind::kNone) continue;
    return InvalidArgument("E-parallel-twice", "data_parallel: the program exchanges tensors between ranks ",
                           "already, by ", entry.op->type(), " of ", entry.op->InputName("X"),
                           "; run it with num_trainers=1");
  }
  return OkStatus();
}

// inplace_abn would silently use moments of the rank's own batch.
Status RequireNoInplaceAbn(const Program& main) {
  for (int block = 0; block < main.block_count(); ++block) {
    for (const OpEntry& entry : main.block(block).ops()) {
      if (entry.op->type() != "inplace_abn") continue;
      return InvalidArgument("E-parallel-sync",
                             "data_parallel: sync_batch_norm does not cover inplace_abn of ",
                             entry.op->InputName("X"), "; use batch_norm and an activation");
    }
  }
  return OkStatus();
}

// Persistable tensors that ops of the program read, in the order of their first reader; with a startup
// program, only those that it declares and does not broadcast yet.
std::vector<const Var*> StateOf(const Program& main, const std::optional<Program>& startup) {
  std::vector<const Var*> out;
  const ViewSet given = startup ? plan::BroadcastIn(*startup) : ViewSet();
  std::set<std::string> seen;
  for (const OpEntry& entry : main.main().ops()) {
    for (const std::string& name : entry.op->InputNames()) {
      if (given.contains(name)) continue;
      const Var* var = main.main().FindVar(name);
      if (var == nullptr || !var->persistable || !var->type || var->kind != VarKind::kTensor) continue;
      if (startup && startup->main().FindVar(name) == nullptr) continue;
      if (var->shape().IsKnown() && seen.insert(name).second) out.push_back(var);
    }
  }
  return out;
}

Program DeclaringOnly(const std::vector<const Var*>& vars) {
  Program program;
  ProgramEdit edit(program);
  for (const Var* var : vars) edit.main().SetVar(*var);
  Result<Program> made = edit.Apply();
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  return *std::move(made);
}

std::vector<plan::RingUse> BroadcastsOf(const std::vector<const Var*>& vars, int rings) {
  std::vector<plan::RingUse> out;
  out.reserve(vars.size());
  for (const Var* var : vars) {
    out.push_back({.var = var->name,
                   .dtype = var->type->dtype,
                   .shape = var->shape(),
                   .ring = static_cast<int>(out.size()) % rings});
  }
  return out;
}

Status RequireAdasum(const plan::RankPlan& ranks) {
  constexpr char kRule[] = "E-parallel-adasum";
  if (!std::has_single_bit(ranks.addresses.size())) {
    return InvalidArgument(kRule, "data_parallel: Adasum combines ranks in pairs, so their number must be a ",
                           "power of two, not ", ranks.addresses.size());
  }
  for (const plan::RingUse& use : ranks.reductions) {
    if (!use.sparse) continue;
    return InvalidArgument(kRule, "data_parallel: Adasum is of dense gradients, and ", use.var,
                           " is sparse; set is_sparse=False");
  }
  return OkStatus();
}

std::vector<Pass> MainPasses(const DataParallelConfig& config) {
  std::vector<Pass> list;
  if (config.addresses.size() > 1) {
    if (config.reduction == GradientReduction::kMean)
      list.push_back({"scale_loss_gradient", passes::ScaleLossGradient});
    if (config.reduction == GradientReduction::kShares)
      list.push_back({"share_loss_gradient", passes::ShareLossGradient});
    if (config.sync_batch_norm) list.push_back({"sync_batch_norm", passes::SyncBatchNorm});
    list.push_back({"allreduce_gradients", passes::AllreduceGradients});
    list.push_back({"await_gradients", passes::AwaitGradients});
    if (config.reduction == GradientReduction::kAdasum)
      list.push_back({"adasum_gradients", passes::AdasumGradients});
    if (config.halved)
      list.push_back({"halve_gradients", passes::HalveGradients});  // changes the exchanges made above
  }
  if (config.runs_per_update > 1)
    list.push_back({"accumulate_gradients", passes::AccumulateGradients});  // moves all of these ops
  if (config.places && config.addresses.size() > 1)
    list.push_back({"update_at_first_place", passes::UpdateAtFirstPlace});
  return list;
}

std::vector<Pass> BeginPasses(const DataParallelConfig& config) {
  std::vector<Pass> list;
  if (config.addresses.size() > 1 && !config.places) {
    list.push_back(config.group_ranks > 0 ? Pass{"generate_nccl_id", passes::GenerateNcclId}
                                          : Pass{"init_rings", passes::InitRings});
    list.push_back({"broadcast_params", passes::BroadcastParams});
    if (config.reduction == GradientReduction::kShares) list.push_back({"start_live", passes::StartLive});
  }
  if (config.runs_per_update > 1) list.push_back({"start_gradient_sums", passes::StartGradientSums});
  return list;
}

}  // namespace

Result<DataParallel> MakeDataParallel(const OpRegistry& ops, const Program& main,
                                      const DataParallelConfig& config) {
  if (const auto conformed = Conformed(ops, main)) return MakeDataParallel(ops, *conformed, config);
  if (!config.startup) PENSTOCK_RETURN_IF_ERROR(RequireNoCollectives(main));
  if (config.sync_batch_norm && config.addresses.size() > 1)
    PENSTOCK_RETURN_IF_ERROR(RequireNoInplaceAbn(main));
  plan::TranspileConfig ranks;
  ranks.kind = plan::Kind::kCollective;
  const bool alone = config.addresses.size() == 1;
  ranks.collective_mode = alone ? "single_process_multi_thread" : "grad_allreduce";
  ranks.trainers = static_cast<int>(config.addresses.size());
  ranks.trainer_addresses = config.addresses;
  ranks.trainer_ids = {config.rank};
  ranks.rings = config.rings;
  const std::vector<const Var*> state = StateOf(main, config.startup);
  const Program startup = config.startup ? *config.startup : DeclaringOnly(state);
  const plan::PlanRequest request{.ops = ops, .main = main, .startup = startup, .config = ranks};
  PENSTOCK_ASSIGN_OR_RETURN(plan::Planned planned,
                            alone ? plan::PlanDeviceSums(request) : plan::PlanGradientSums(request));
  if (config.reduction == GradientReduction::kAdasum)
    PENSTOCK_RETURN_IF_ERROR(RequireAdasum(planned.plan.ranks));
  if (config.reduction == GradientReduction::kShares) planned.plan.on_uneven = OnUneven::kJoin;
  planned.plan.ranks.average_every = config.runs_per_update;
  planned.plan.ranks.broadcasts = BroadcastsOf(state, config.rings);
  planned.plan.ranks.node_ranks = config.group_ranks;
  if (config.sync_batch_norm) ++planned.plan.ranks.rings;
  PENSTOCK_RETURN_IF_ERROR(plan::ValidatePlan(planned.plan, main));
  const passes::Shares shares(planned.plan, planned.analysis, startup);
  const passes::PassContext context{.ops = ops,
                                    .main = main,
                                    .startup = startup,
                                    .analysis = planned.analysis,
                                    .plan = planned.plan,
                                    .shares = shares,
                                    .self = {.index = config.rank}};
  DataParallel out;
  PassManager manager;
  PENSTOCK_ASSIGN_OR_RETURN(out.main, manager.Run("data_parallel", MainPasses(config), main, context));
  PENSTOCK_ASSIGN_OR_RETURN(out.begin,
                            manager.Run("data_parallel_startup", BeginPasses(config), startup, context));
  return out;
}

}  // namespace penstock
