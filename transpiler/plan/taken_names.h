// Names of slices that are in use already: a program may have both a parameter `a` that is cut and a variable
// called a.block1.
#pragma once

#include <string>
#include <unordered_set>

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock {

// The names of the program that a slice might be given: few or none, so that asking costs one look at each.
std::unordered_set<std::string> NamesLikePieces(const Program& main);

// Gives each parameter whose slices would be called like a variable of the program a mark that tells them
// apart. Not in compat: Fluid raises. Needs pservers, params with their slices, in the order of the analysis.
void MarkTakenNames(const Program& main, const Analysis& analysis, PlacementPlan& plan);

}  // namespace penstock
