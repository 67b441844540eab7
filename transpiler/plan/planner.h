// Makes the analysis and the plan, from which the passes of a mode work. There is one planner for each way to
// share the work; pipeline/pipelines.cc assigns planners to modes.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

struct PlanRequest {
  const OpRegistry& ops;
  const Program& main;
  const Program& startup;
  const TranspileConfig& config;
};

struct Planned {
  Analysis analysis;
  PlacementPlan plan;
};

// Each planner validates its plan against the programs. Errors: those of ValidateConfig, Analyse, MakePlan
// and ValidatePlan.
using Planner = Result<Planned> (*)(const PlanRequest& request);

// Pservers update parameters.
Result<Planned> PlanUpdatesOnPservers(const PlanRequest& request);
// Pservers update sparse parameters; trainers all-reduce the gradients of dense parameters and update these.
Result<Planned> PlanBothExchanges(const PlanRequest& request);
// Trainers update parameters, and pservers add up the differences (geo).
Result<Planned> PlanDifferences(const PlanRequest& request);
// No pservers. Ranks only find each other; the executor sums gradients (nccl2).
Result<Planned> PlanRanks(const PlanRequest& request);
// No pservers. The program sums the gradients of all ranks.
Result<Planned> PlanGradientSums(const PlanRequest& request);
// No pservers. The program sums the gradients of the devices of one process.
Result<Planned> PlanDeviceSums(const PlanRequest& request);
// No pservers. The program averages the parameters of all ranks (local SGD).
Result<Planned> PlanUpdateSums(const PlanRequest& request);

}  // namespace penstock::plan
