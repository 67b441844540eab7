// What a program consists of where trainers update their parameters themselves (geo, jobs without pservers).
// How an update is computed does not matter then, so nothing is asked of optimizers.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Of the Analysis: parameters with gradient and updating op, update_order, and clip_ops (those that Fluid
// makes part of the backward pass). An update is an optimize-role op that writes the parameter of its own
// op_role_var; in compat, one with the slots Param, Grad and LearningRate. E-plan-no-params,
// E-plan-undeclared, E-plan-updated-twice.
Result<Analysis> AnalyseUpdates(const Program& main, Dialect dialect);

// The startup program's parameters in the order in which they were made. Programs without facts do not say
// what a parameter is: then these are the lasting variables that the forward pass reads, the one initialized
// last first, since Fluid puts each initializer in front of the others. Without those that lie on several
// machines.
std::vector<std::string> InitialParams(const Program& main, const Program& startup);

}  // namespace penstock::plan
