#include "transpiler/plan/planner.h"

#include <set>
#include <string>

#include "transpiler/plan/analyse_updates.h"
#include "transpiler/plan/make_plan.h"
#include "transpiler/plan/row_policies.h"
#include "transpiler/plan/start_values.h"

namespace penstock::plan {
namespace {

Result<Planned> Place(Analysis analysis, const PlanRequest& request, const TranspileConfig& config) {
  Planned out{.analysis = std::move(analysis), .plan = {}};
  PENSTOCK_ASSIGN_OR_RETURN(out.plan, MakePlan(request.main, out.analysis, config));
  PENSTOCK_RETURN_IF_ERROR(RequireRowPolicies(request.main, out.plan));
  PENSTOCK_RETURN_IF_ERROR(ValidatePlan(out.plan, request.main));
  return out;
}

// In Fluid's geo mode, trainers do not fetch the initial value of a lookup_table table: each keeps its own,
// and these differ.
void KeepOwnTables(const Program& main, Analysis& analysis) {
  std::set<std::string> tables;
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    const bool rows = op.GetOr<bool>("is_sparse", false) || op.GetOr<bool>("is_distributed", false);
    if (rows && op.type() == "lookup_table") tables.insert(op.InputName("W"));
  }
  for (TrainedParam& param : analysis.params) param.prefetched = tables.contains(param.param);
}

}  // namespace

Result<Planned> PlanUpdatesOnPservers(const PlanRequest& request) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(request.config));
  PENSTOCK_ASSIGN_OR_RETURN(Analysis analysis,
                            Analyse(request.ops, request.main, request.config.dialect, request.config.clip));
  FindStartValues(request.main, request.startup, request.config.others, analysis);
  return Place(std::move(analysis), request, request.config);
}

Result<Planned> PlanDifferences(const PlanRequest& request) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(request.config));
  PENSTOCK_ASSIGN_OR_RETURN(Analysis analysis, AnalyseUpdates(request.main, request.config.dialect));
  FindStartValues(request.main, request.startup, request.config.others, analysis);
  if (request.config.dialect == Dialect::kFluid18) KeepOwnTables(request.main, analysis);
  TranspileConfig config = request.config;
  config.slice_params = true;  // as in Fluid, which ignores slice_var_up here
  PENSTOCK_ASSIGN_OR_RETURN(Planned out, Place(std::move(analysis), request, config));
  out.plan.push_every = config.geo_push_every;
  return out;
}

}  // namespace penstock::plan
