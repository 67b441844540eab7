// Which ops are optimizers, and which of their state is cut with the parameter.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

struct OptimizerUse {
  std::string param;
  bool elementwise = true;
  std::set<std::string> row_state;  // variable names
};

// Empty if the op is no optimizer. In the default dialect the op's declaration decides (.Optimizes, .State),
// and an op that writes the parameter of its role pair without one is E-plan-optimizer. In compat it is
// Fluid's rule: an op with the slots Param and LearningRate, whose state is known by a fixed list of op
// types.
Result<std::optional<OptimizerUse>> RecogniseOptimizer(const OpRegistry& ops, const Block& main, const Op& op,
                                                       Dialect dialect);

// How Fluid updates a distributed table, whatever the user's optimizer: by the gradient, at its learning
// rate.
Op FluidTableUpdate(const Op& users, const std::string& table, const std::string& grad);

}  // namespace penstock::plan
