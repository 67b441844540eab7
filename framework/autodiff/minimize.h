// Adds what Fluid's Optimizer.minimize adds: gradients, regularization and the optimizer's ops to the main
// program; initial values of the learning rate and the optimizer's state to the startup program.
//
//   Naming naming{names, scopes};
//   OptimizerSpec momentum{.op_type = "momentum", .attrs = {{"mu", 0.9f}}, .learning_rate = 0.01f};
//   PENSTOCK_ASSIGN_OR_RETURN(MinimizeResult made,
//                             Minimize(ops, main, startup, naming, momentum, {.loss = "mean_0.tmp_0"}));
//
// Minimize is OptimizerBackward followed by ApplyGradients; the caller may change the pairs in between. On an
// error both programs are unchanged.
//
// kInvalidArgument: the errors of AppendBackward; the op type is unknown or not an optimizer
// (E-optimizer-type); an attribute or an input of `spec` does not fit (E-optimizer-attr); a parameter or
// gradient is not a tensor of the program (E-optimizer-param); the learning rate's variable does not exist
// (E-optimizer-rate).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/autodiff/backward.h"
#include "framework/autodiff/optimizer_spec.h"
#include "framework/base/status.h"
#include "framework/ir/name_scope.h"
#include "framework/ir/program.h"
#include "framework/ir/unique_name.h"
#include "framework/op/op_registry.h"

namespace penstock {

// The sources of names for new variables and scopes.
struct Naming {
  UniqueNames& names;
  NameScopes& scopes;
};

struct MinimizeResult {
  std::vector<ParamGrad> params_grads;    // as AppendBackward returned them
  std::string learning_rate;              // the name of its variable
  std::vector<std::string> accumulators;  // the kinds of state: StateDef::accumulator, in order
  std::map<std::string, std::vector<std::string>> states;  // per parameter, the variable of each kind
  std::vector<OpId> optimizer_ops;  // in the order of the block: the updates and their auxiliary ops
};

Result<MinimizeResult> Minimize(const OpRegistry& ops, Program& main, Program& startup, Naming naming,
                                const OptimizerSpec& spec, const BackwardOptions& options);

// As AppendBackward, but makes no gradients of frozen parameters.
Result<BackwardResult> OptimizerBackward(const OpRegistry& ops, Program& main, UniqueNames& names,
                                         BackwardOptions options);

// Handles the pairs in the order of the parameters' names, as Fluid does; `params_grads` need not be sorted.
// Updates of tables sharded by id (is_distributed) come first.
Result<MinimizeResult> ApplyGradients(const OpRegistry& ops, Program& main, Program& startup, Naming naming,
                                      const OptimizerSpec& spec, std::vector<ParamGrad> params_grads);

}  // namespace penstock
