// Decides the placement of all parameters. The same analysis and configuration give the same plan in every
// process.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// `main` is the analysed program. kInvalidArgument: the errors of ValidateConfig, a parameter whose shape is
// not known, a compression rule that no gradient can follow, an invalid answer of the user's dispatcher.
Result<PlacementPlan> MakePlan(const Program& main, const Analysis& analysis, const TranspileConfig& config);

}  // namespace penstock::plan
