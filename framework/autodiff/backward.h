// Adds the gradient ops of a loss to a program, as Fluid's append_backward: the loss gradient's
// fill_constant, one gradient op (or several) for each forward op that reaches a parameter, `sum` where a
// gradient has several parts, roles, and (param, grad) pairs on the ops that write them.
//
//   PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result, AppendBackward(ops, program, names, {.loss =
//   "mean_0.tmp_0"}));
//
// kInvalidArgument: the loss is unknown or not of one element; an op on the way has no gradient
// (E-backward-no-grad); a parameter that was asked for is not reached.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/ir/unique_name.h"
#include "framework/op/op_registry.h"

namespace penstock {

struct BackwardOptions {
  std::string loss;
  std::vector<std::string> parameters;  // empty: all trainable parameters of block 0
  std::set<std::string> no_grad;        // beside the variables marked stop_gradient
};

using ParamGrad = std::pair<std::string, std::string>;

struct BackwardResult {
  std::vector<ParamGrad> params_grads;  // in the order of the parameters in the block
};

Result<BackwardResult> AppendBackward(const OpRegistry& ops, Program& program, UniqueNames& names,
                                      const BackwardOptions& options);

}  // namespace penstock
