// Which passes make which role program, in which order and why, and from which plan. One set of pipelines a
// mode; passes know no mode.
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
  plan::Planner plan = plan::PlanUpdatesOnPservers;  // what the passes apply
};

const Pipelines& PipelinesOf(plan::Mode mode);

}  // namespace penstock
