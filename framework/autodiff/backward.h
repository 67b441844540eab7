// Adds the gradient ops of a loss to a program, as Fluid's append_backward does: the fill_constant of the
// loss gradient, the gradient ops of each forward op between a parameter and the loss, a `sum` for each
// gradient with several parts, op roles, and the (param, grad) pairs on the ops that write the gradients.
//
//   PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result,
//                             AppendBackward(ops, program, names, {.loss = "mean_0.tmp_0"}));
//
// If the block already has the gradient from an earlier call, the new gradient gets another name:
// grad/grad/x@GRAD in the second call, one more grad/ in each further call.
//
// Works on block 0. The gradient of an op that runs a block (GradOfBlock in op/op_def.h) is a new block. On
// an error the program is unchanged.
//
// kInvalidArgument: the loss is unknown, no op writes it, or its shape is not [1] (E-backward-loss); an op
// between a parameter and the loss has no gradient (E-backward-no-grad); a requested parameter
// (E-backward-param) or checkpoint (E-backward-checkpoint) is unknown; an op names a block that does not
// exist (E-block-index) or that runs itself (E-block-cycle).
// kUnimplemented: an op that runs a block has no gradient (E-backward-block); a gradient inside a block needs
// a value that the block has written to an outer variable and that is not kept (E-backward-overwritten).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/ir/unique_name.h"
#include "framework/op/op_registry.h"

namespace penstock {

struct BackwardOptions {
  std::string loss;
  std::vector<std::string> parameters = {};  // empty: all trainable parameters of block 0
  NameSet no_grad = {};                      // in addition to the variables marked stop_gradient
  int earlier = 0;                           // earlier calls of AppendBackward and AppendGradients
  // Recompute the values between these variables instead of keeping them (recompute.h); empty: keep all.
  std::vector<std::string> checkpoints = {};
};

using ParamGrad = std::pair<std::string, std::string>;

struct BackwardResult {
  // In the order of `parameters`; if that is empty, in the order of the block. Without parameters on which
  // the loss does not depend.
  std::vector<ParamGrad> params_grads;
  std::map<std::string, std::string> forward_of;  // from gradient to variable, for variables of block 0
};

Result<BackwardResult> AppendBackward(const OpRegistry& ops, Program& program, UniqueNames& names,
                                      const BackwardOptions& options);

struct GradientsOptions {
  std::vector<std::string> targets;
  std::vector<std::string> inputs;
  std::vector<std::string> target_gradients = {};  // one per target, "" for ones; empty: ones for all
  NameSet no_grad = {};                            // in addition to the variables marked stop_gradient
  int earlier = 0;                                 // as BackwardOptions'
};

// Adds the gradient ops of the targets, as Fluid's `gradients` does. Returns for each input the variable that
// holds the gradient of the sum of the targets, weighted by target_gradients; "" if no target depends on the
// input.
//
// kInvalidArgument: E-gradients-none, E-gradients-var, E-gradients-count, E-gradients-shape;
// E-backward-no-grad. kUnimplemented E-gradients-apart: one target depends on another.
Result<std::vector<std::string>> AppendGradients(const OpRegistry& ops, Program& program, UniqueNames& names,
                                                 const GradientsOptions& options);

// The parameters of block 0 that are not trainable. OptimizerBackward makes no gradients of them;
// AppendBackward itself ignores the flag, as in Fluid.
NameSet FrozenParameters(const Program& program);

}  // namespace penstock
