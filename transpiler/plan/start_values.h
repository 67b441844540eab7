// Finds the variables of the model that no pserver updates but that all trainers must start with alike:
// frozen parameters, and the running statistics of normalisation. In Fluid every trainer computes their
// initial values itself, from its own random numbers.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Fills analysis.start_values: variables that are parameters according to the program's facts, are not
// trained, and get a value in the startup program. Sorted by name, so that every process has the same order.
// `others` (TranspileConfig::others) are left out.
void FindStartValues(const Program& main, const Program& startup, const std::vector<std::string>& others,
                     Analysis& analysis);

}  // namespace penstock::plan
