#include "transpiler/pipeline/transpile.h"

#include "transpiler/pipeline/pipelines.h"
#include "transpiler/pipeline/shared_startup.h"
#include "transpiler/plan/planner.h"

namespace penstock {
namespace {

class RoleMaker {
 public:
  RoleMaker(const PassContext& common, const Pipelines& pipelines, PassOptions options)
      : common_(common),
        pipelines_(pipelines),
        manager_(std::move(options)),
        plan_text_(PrintPlan(common.plan)) {}

  Result<TrainerRole> Trainer(int trainer_id) {
    const PassContext context = As(Self::Role::kTrainer, trainer_id);
    TrainerRole role;
    role.trainer_id = trainer_id;
    PENSTOCK_ASSIGN_OR_RETURN(role.main, manager_.Run("trainer", pipelines_.trainer, common_.main, context));
    PENSTOCK_ASSIGN_OR_RETURN(
        role.startup, manager_.Run("trainer_startup", pipelines_.trainer_startup, common_.startup, context));
    role.main.mutable_meta().plan = plan_text_;
    role.startup.mutable_meta().plan = plan_text_;
    return role;
  }

  Result<PserverRole> Pserver(int index) {
    const PassContext context = As(Self::Role::kPserver, index);
    PserverRole role;
    role.address = common_.plan.pservers[static_cast<std::size_t>(index)];
    PENSTOCK_ASSIGN_OR_RETURN(role.main, manager_.Run("pserver", pipelines_.pserver, Program(), context));
    PENSTOCK_ASSIGN_OR_RETURN(
        role.startup, manager_.Run("pserver_startup", pipelines_.pserver_startup, role.main, context));
    role.main.mutable_meta().plan = plan_text_;
    role.startup.mutable_meta().plan = plan_text_;
    return role;
  }

  const std::vector<PassTiming>& timings() const { return manager_.timings(); }

 private:
  PassContext As(Self::Role role, int index) const {
    return {.ops = common_.ops,
            .main = common_.main,
            .startup = common_.startup,
            .analysis = common_.analysis,
            .plan = common_.plan,
            .shares = common_.shares,
            .self = {.role = role, .index = index}};
  }

  const PassContext& common_;
  const Pipelines& pipelines_;
  PassManager manager_;
  std::string plan_text_;
};

}  // namespace

namespace {

void SetPolicy(const char* name, std::string_view value, RoleSet& roles) {
  const auto set = [&](Program& program) { program.mutable_meta().policies[name] = value; };
  for (TrainerRole& role : roles.trainers) {
    set(role.main);
    set(role.startup);
  }
  for (PserverRole& role : roles.pservers) {
    set(role.main);
    set(role.startup);
  }
}

}  // namespace

Result<RoleSet> Transpile(const OpRegistry& ops, const Program& main, const Program& startup,
                          const TranspileConfig& config, PassOptions options) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(config));
  PENSTOCK_ASSIGN_OR_RETURN(const Mode mode, ResolveMode(config));
  const Pipelines& pipelines = PipelinesOf(mode);
  PENSTOCK_ASSIGN_OR_RETURN(Planned planned,
                            pipelines.plan({.ops = ops, .main = main, .startup = startup, .config = config}));
  RoleSet roles;
  roles.plan = std::move(planned.plan);

  const Shares shares(roles.plan, planned.analysis, startup);
  const PassContext common{.ops = ops,
                           .main = main,
                           .startup = startup,
                           .analysis = planned.analysis,
                           .plan = roles.plan,
                           .shares = shares,
                           .self = {}};
  RoleMaker maker(common, pipelines, std::move(options));
  for (const int trainer : config.trainer_ids) {
    PENSTOCK_ASSIGN_OR_RETURN(TrainerRole role, maker.Trainer(trainer));
    roles.trainers.push_back(std::move(role));
  }
  for (std::size_t i = 0; i < roles.plan.pservers.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(PserverRole role, maker.Pserver(static_cast<int>(i)));
    roles.pservers.push_back(std::move(role));
  }
  if (config.shared_transpiler && config.dialect == Dialect::kFluid18) {
    for (TrainerRole& role : roles.trainers) role.startup = AfterPserverStartups(role.startup, roles, common);
  }
  if (config.bn_sync != BnSync::kNone) SetPolicy(kBnSyncPolicy, BnSyncName(config.bn_sync), roles);
  roles.timings = maker.timings();
  return roles;
}

}  // namespace penstock
