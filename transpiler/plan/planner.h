// From programs and a configuration to what the passes of a mode work from. There is one planner for each way
// to share the work; pipeline/pipelines.cc says which mode has which.
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

// The plans are validated against the programs. The errors of ValidateConfig, Analyse, MakePlan and
// ValidatePlan.
using Planner = Result<Planned> (*)(const PlanRequest& request);

// Pservers update parameters.
Result<Planned> PlanUpdatesOnPservers(const PlanRequest& request);
// Pservers update sparse parameters, trainers the dense ones, whose gradients they add up.
Result<Planned> PlanBothExchanges(const PlanRequest& request);
// Trainers do, and pservers add up the differences.
Result<Planned> PlanDifferences(const PlanRequest& request);
// There are no pservers. Ranks find each other,
Result<Planned> PlanRanks(const PlanRequest& request);
// and also add up their gradients,
Result<Planned> PlanGradientSums(const PlanRequest& request);
// or those of the devices of one process,
Result<Planned> PlanDeviceSums(const PlanRequest& request);
// or what they have learned.
Result<Planned> PlanUpdateSums(const PlanRequest& request);

}  // namespace penstock::plan
