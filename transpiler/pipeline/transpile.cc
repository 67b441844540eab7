#include "transpiler/pipeline/transpile.h"

#include <map>
#include <optional>
#include <string>

#include "framework/ir/random_draws.h"
#include "transpiler/pipeline/describe_job.h"
#include "transpiler/pipeline/pipelines.h"
#include "transpiler/pipeline/prepare_source.h"
#include "transpiler/pipeline/shared_startup.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/policies.h"

namespace penstock {
namespace {

class RoleMaker {
 public:
  RoleMaker(const passes::PassContext& common, const Pipelines& pipelines, const std::string& plan_text,
            PassOptions options)
      : common_(common), pipelines_(pipelines), plan_text_(plan_text), manager_(std::move(options)) {}

  Result<TrainerPrograms> Trainer(int trainer_id) {
    const passes::PassContext context = As(passes::Self::Role::kTrainer, trainer_id);
    TrainerPrograms role;
    role.trainer_id = trainer_id;
    PENSTOCK_ASSIGN_OR_RETURN(role.main, manager_.Run("trainer", pipelines_.trainer, common_.main, context));
    PENSTOCK_ASSIGN_OR_RETURN(
        role.startup, manager_.Run("trainer_startup", pipelines_.trainer_startup, common_.startup, context));
    KeepDraws(common_.startup, role.startup);
    const JobPolicies policies = plan::TrainerPolicies(common_.plan, trainer_id);
    for (Program* program : {&role.main, &role.startup}) Sign(policies, *program);
    return role;
  }

  Result<PserverPrograms> Pserver(int index) {
    const passes::PassContext context = As(passes::Self::Role::kPserver, index);
    PserverPrograms role;
    role.address = common_.plan.pservers[static_cast<std::size_t>(index)];
    PENSTOCK_ASSIGN_OR_RETURN(role.main, manager_.Run("pserver", pipelines_.pserver, Program(), context));
    PENSTOCK_ASSIGN_OR_RETURN(
        role.startup, manager_.Run("pserver_startup", pipelines_.pserver_startup, role.main, context));
    KeepDraws(common_.startup, role.startup);
    const JobPolicies policies = plan::PserverPolicies(common_.plan, common_.shares.SlicesOn(index));
    for (Program* program : {&role.main, &role.startup}) Sign(policies, *program);
    for (const plan::SliceRef ref : common_.shares.SlicesOn(index)) {
      const plan::Slice& slice = common_.plan.slice(ref);
      if (slice.chunk_rows == slice.rows()) continue;
      role.main.mutable_meta().chunk_rows[plan::ParamPieceName(common_.plan.param(ref), ref.slice)] =
          slice.chunk_rows;
    }
    return role;
  }

  const std::vector<PassTiming>& timings() const { return manager_.timings(); }

 private:
  // Adds the plan that the program follows and the policies to run it by.
  void Sign(const JobPolicies& policies, Program& program) const {
    program.mutable_meta().plan = plan_text_;
    WritePolicies(policies, program.mutable_meta());
  }

  passes::PassContext As(passes::Self::Role role, int index) const {
    return {.ops = common_.ops,
            .main = common_.main,
            .startup = common_.startup,
            .analysis = common_.analysis,
            .plan = common_.plan,
            .shares = common_.shares,
            .self = {.role = role, .index = index}};
  }

  const passes::PassContext& common_;
  const Pipelines& pipelines_;
  const std::string& plan_text_;
  PassManager manager_;
};

// Makes all roles: in parallel if there are threads and no clock, observer or reproducer, else in order up to
// the first error.
class RoleSetMaker {
 public:
  RoleSetMaker(const passes::PassContext& common, const Pipelines& pipelines,
               const std::vector<int>& trainer_ids, const PassOptions& options, RoleSet& roles)
      : common_(common),
        pipelines_(pipelines),
        trainer_ids_(trainer_ids),
        options_(options),
        plan_text_(plan::PrintPlan(common.plan)),
        roles_(roles) {
    roles.trainers.resize(trainer_ids.size());
    roles.pservers.resize(common.plan.pservers.size());
    made_.resize(roles.trainers.size() + roles.pservers.size());
  }

  Status Run() {
    const bool watched = options_.clock != nullptr || options_.observe || options_.reproducer;
    const bool side_by_side = options_.threads != nullptr && !watched;
    if (side_by_side)
      options_.threads->ForEach(made_.size(), [this](std::size_t i) { made_[i].status = Make(i); });
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (!side_by_side) made_[i].status = Make(i);
      PENSTOCK_RETURN_IF_ERROR(made_[i].status);
      roles_.timings.insert(roles_.timings.end(), made_[i].timings.begin(), made_[i].timings.end());
    }
    return OkStatus();
  }

 private:
  struct Made {
    Status status;
    std::vector<PassTiming> timings;
  };

  Status Make(std::size_t i) {
    RoleMaker maker(common_, pipelines_, plan_text_, options_);
    if (i < roles_.trainers.size()) {
      PENSTOCK_ASSIGN_OR_RETURN(roles_.trainers[i], maker.Trainer(trainer_ids_[i]));
    } else {
      const std::size_t pserver = i - roles_.trainers.size();
      PENSTOCK_ASSIGN_OR_RETURN(roles_.pservers[pserver], maker.Pserver(static_cast<int>(pserver)));
    }
    made_[i].timings = maker.timings();
    return OkStatus();
  }

  const passes::PassContext& common_;
  const Pipelines& pipelines_;
  const std::vector<int>& trainer_ids_;
  const PassOptions& options_;
  const std::string plan_text_;
  RoleSet& roles_;
  std::vector<Made> made_;  // trainers, then pservers
};

template <typename Change>
void ChangeMetas(RoleSet& roles, const Change& change) {
  for (TrainerPrograms& role : roles.trainers) {
    change(role.main.mutable_meta());
    change(role.startup.mutable_meta());
  }
  for (PserverPrograms& role : roles.pservers) {
    change(role.main.mutable_meta());
    change(role.startup.mutable_meta());
  }
}

Result<RoleSet> TranspilePrepared(const OpRegistry& ops, const PreparedSource& source,
                                  const PassOptions& options) {
  const plan::TranspileConfig& config = source.config;
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Mode mode, plan::ResolveMode(config));
  const Pipelines& pipelines = PipelinesOf(mode);
  PENSTOCK_ASSIGN_OR_RETURN(
      plan::Planned planned,
      pipelines.plan({.ops = ops, .main = source.main, .startup = source.startup, .config = config}));
  RoleSet roles;
  roles.plan = std::move(planned.plan);
  roles.plan.lacks_unwritten_parts = source.lacks_unwritten_parts;
  roles.server_vars = planned.analysis.server_vars;

  const passes::Shares shares(roles.plan, planned.analysis, source.startup);
  const passes::PassContext common{.ops = ops,
                                   .main = source.main,
                                   .startup = source.startup,
                                   .analysis = planned.analysis,
                                   .plan = roles.plan,
                                   .shares = shares,
                                   .self = {}};
  PENSTOCK_RETURN_IF_ERROR(RoleSetMaker(common, pipelines, config.trainer_ids, options, roles).Run());
  if (config.shared_transpiler && config.dialect == plan::Dialect::kFluid18) {
    for (TrainerPrograms& role : roles.trainers)
      role.startup = AfterPserverStartups(role.startup, roles, common);
  }
  std::map<std::string, std::string> policies;
  if (config.bn_sync != plan::BnSync::kNone) policies[plan::kBnSyncPolicy] = plan::BnSyncName(config.bn_sync);
  const std::string job_facts = DescribeJob(ops, source.main, source.startup, roles.plan, policies);
  ChangeMetas(roles, [&](ProgramMeta& meta) {
    meta.job_facts = job_facts;
    for (const auto& [name, value] : policies) meta.policies[name] = value;
  });
  return roles;
}

}  // namespace

Result<RoleSet> Transpile(const OpRegistry& ops, const Program& main, const Program& startup,
                          const plan::TranspileConfig& config, const PassOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(const PreparedSource source, PrepareSource(ops, main, startup, config));
  return TranspilePrepared(ops, source, options);
}

}  // namespace penstock
