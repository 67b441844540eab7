// Recognises optimizers, and their state that is sliced with the parameter.
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

// Returns nullopt if the op is not an optimizer. In the default dialect the op's declaration decides
// (.Optimizes, .State); an unknown op that writes the parameter of its role pair is E-plan-optimizer.
// Compat uses Fluid's rule: an op with the slots Param and LearningRate, with state from a fixed list of op
// types.
Result<std::optional<OptimizerUse>> RecogniseOptimizer(const OpRegistry& ops, const Block& main, const Op& op,
                                                       Dialect dialect);

// Makes the op by which Fluid updates a distributed table, whatever the user's optimizer is: sgd with that
// optimizer's learning rate. `users`: the user's optimizer op.
Op FluidTableUpdate(const Op& users, const std::string& table, const std::string& grad);

}  // namespace penstock::plan
