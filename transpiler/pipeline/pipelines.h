// The passes that make each role program, in order, and the planner: one set per mode. Passes do not know the
// mode. pipelines.cc states the reasons for the order.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "transpiler/pipeline/pass_manager.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/planner.h"

namespace penstock {

struct Pipelines {
  std::span<const Pass> trainer;                     // from the user's main program
  std::span<const Pass> trainer_startup;             // from the user's startup program
  std::span<const Pass> pserver;                     // from an empty program
  std::span<const Pass> pserver_startup;             // from the pserver's finished main program
  plan::Planner plan = plan::PlanUpdatesOnPservers;  // makes the plan that the passes apply
};

const Pipelines& PipelinesOf(plan::Mode mode);

}  // namespace penstock
