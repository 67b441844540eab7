// The analysis for jobs in which trainers update their parameters themselves (geo, jobs without pservers).
// The computation of an update does not matter there, so optimizers need no declaration.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Fills these parts of the Analysis: parameters with gradient and updating op, update_order, and clip_ops
// (those that Fluid makes part of the backward pass). An update is an optimize-role op that writes the
// parameter of its own op_role_var; in compat, an op with the slots Param, Grad and LearningRate.
//
// kInvalidArgument: E-plan-no-params, E-plan-undeclared, E-plan-updated-twice.
Result<Analysis> AnalyseUpdates(const Program& main, Dialect dialect);

// The startup program's parameters in the order of their creation, without distributed ones. A program
// without facts does not say which variables are parameters; then these are the persistable variables that
// the forward pass reads, in reverse order of their initializers, because Fluid puts each initializer in
// front of the others.
std::vector<std::string> InitialParams(const Program& main, const Program& startup);

}  // namespace penstock::plan
