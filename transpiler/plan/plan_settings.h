// The settings that a plan carries: the rows PENSTOCK_PLAN_SETTING of settings.def.
//
//   CarrySettings(config, plan);
//   PrintSettings(plan)                    ", staleness=3, clip=\"global\"": those that are not the default
//   ParseSetting(line, plan)               of such an entry, from its key on
#pragma once

#include <string>

#include "transpiler/plan/plan.h"
#include "transpiler/plan/plan_line.h"

namespace penstock::plan {

void CarrySettings(const TranspileConfig& config, PlacementPlan& plan);
std::string PrintSettings(const PlacementPlan& plan);
// Returns whether the line continues with the key of a setting and a value that it can have.
bool ParseSetting(Line& line, PlacementPlan& plan);

}  // namespace penstock::plan
