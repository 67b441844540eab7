// Finds optimize-role ops that follow a parameter without contributing to its update, such as averages of
// its values (ExponentialMovingAverage, ModelAverage).
#pragma once

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Removes these ops of dense parameters from the analysis: they stay on the trainers, which receive the
// updated parameter, run them on it, and can then use the averages. An op that reads state of the update,
// or that comes before the parameter's last update, stays with the update. So do all ops of parameters with
// sparse gradients, which may be on pservers alone.
void KeepAverages(const Block& main, Analysis& analysis);

}  // namespace penstock::plan
