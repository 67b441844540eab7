// Decides where everything goes. The same analysis and configuration give the same plan in every process.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// `main` is the program that `analysis` is of. kInvalidArgument: ValidateConfig's errors, a parameter whose
// shape is not known, a rule of compression that no gradient can follow, and what a dispatcher of the user's
// own gets wrong.
Result<PlacementPlan> MakePlan(const Program& main, const Analysis& analysis, const TranspileConfig& config);

}  // namespace penstock::plan
