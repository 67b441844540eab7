// Makes the gradient ops of a loss, or of several targets, as a list that is not in the program yet: the ops
// of block 0 in their final order, last forward op first. For an op that runs a block, makes the gradient of
// the block first, as a new block (its forward_block is set) that has its ops but no variables yet.
#pragma once

#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// Which gradients are wanted, in block 0.
struct GradTargets {
  NameSet targets;
  NameSet inputs;   // only gradients on the way to these; empty: of all variables the targets depend on
  NameSet no_grad;  // in addition to the variables marked stop_gradient
  int earlier = 0;  // as BackwardOptions'
};

// Errors: those of AppendBackward.
Result<std::vector<Op>> MakeGradList(const OpRegistry& ops, Program& program, const GradTargets& wanted,
                                     GradNames& grad_names);

}  // namespace penstock
