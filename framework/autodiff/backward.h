// Adds the gradient ops of a loss to a program, as Fluid's append_backward: the loss gradient's
// fill_constant, one gradient op (or several) for each forward op that reaches a parameter, `sum` where a
// gradient has several parts, roles, and (param, grad) pairs on the ops that write them.
//
//   PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result,
//                             AppendBackward(ops, program, names, {.loss = "mean_0.tmp_0"}));
//
// A gradient that stands in the block from an earlier call goes under another name: grad/grad/x@GRAD in the
// second call, one grad/ more in each further one.
//
// Works on block 0. On an error the program is as it was.
//
// kInvalidArgument: the loss is unknown, nobody writes it, or it is not of one element (E-backward-loss); an
// op on the way has no gradient (E-backward-no-grad); a parameter that was asked for is unknown
// (E-backward-param), or a checkpoint (E-backward-checkpoint).
// Through an op that runs a block (GradOfBlock in op/op_def.h) the gradient is a new block.
//
// kInvalidArgument also: such an op names a block that is not there, or that starts itself (E-block-index,
// E-block-cycle). kUnimplemented: an op on the way runs a block and has no gradient (E-backward-block); a
// gradient in a block needs what the block has written over (E-backward-overwritten).
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
  NameSet no_grad = {};                      // beside the variables marked stop_gradient
  int earlier = 0;                           // calls of this and of AppendGradients for the program before
  // Between these variables values are computed again instead of kept (recompute.h); empty: all are kept.
  std::vector<std::string> checkpoints = {};
};

using ParamGrad = std::pair<std::string, std::string>;

struct BackwardResult {
  // In the order of `parameters`, else of the block. A parameter that the loss does not depend on is left
  // out.
  std::vector<ParamGrad> params_grads;
  std::map<std::string, std::string> forward_of;  // of each gradient of a variable of block 0
};

Result<BackwardResult> AppendBackward(const OpRegistry& ops, Program& program, UniqueNames& names,
                                      const BackwardOptions& options);

struct GradientsOptions {
  std::vector<std::string> targets;
  std::vector<std::string> inputs;
  std::vector<std::string> target_gradients = {};  // a variable each, "" for ones; empty: ones for all
  NameSet no_grad = {};                            // beside the variables marked stop_gradient
  int earlier = 0;                                 // as BackwardOptions'
};

// Adds the ops of the gradients of the targets, as Fluid's `gradients`: for each input the variable that
// holds the gradient of the targets' sum, weighted by target_gradients; "" where the targets do not depend on
// it.
//
// kInvalidArgument: E-gradients-none, E-gradients-var, E-gradients-count, E-gradients-shape;
// E-backward-no-grad. kUnimplemented E-gradients-apart: one target depends on another.
Result<std::vector<std::string>> AppendGradients(const OpRegistry& ops, Program& program, UniqueNames& names,
                                                 const GradientsOptions& options);

// The parameters of block 0 that are not trainable. An optimizer asks for no gradient of theirs;
// append_backward by itself does not look at it, as in Fluid.
NameSet FrozenParameters(const Program& program);

}  // namespace penstock
