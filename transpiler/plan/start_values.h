// Variables of the model that no pserver updates, and that all trainers must start with alike: frozen
// parameters, and the running statistics of normalisation. Fluid lets every trainer start them by itself,
// from random numbers of its own.
#pragma once

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Fills analysis.start_values: parameters, by the facts of the program, that are not trained and that the
// startup program gives a value. By name, so that every process has the same order.
void FindStartValues(const Program& main, const Program& startup, Analysis& analysis);

}  // namespace penstock::plan
