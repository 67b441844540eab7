// The gradient ops of a loss, or of several targets, as a list, not yet in the program: those of block 0 in
// the order they will stand in, last forward op first. Of an op that runs a block, the gradient of that block
// is made first, as a new block whose forward_block it is; it holds its ops, but declares no variables yet.
#pragma once

#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// What gradients are asked for, in block 0.
struct GradTargets {
  NameSet targets;
  NameSet inputs;   // only gradients on the way to these; empty: to all that the targets depend on
  NameSet no_grad;  // beside the variables marked stop_gradient
  int earlier = 0;  // as BackwardOptions'
};

// Errors: as AppendBackward's. E-backward-overwritten: the gradient of an op in a block needs a value that
// nobody keeps.
Result<std::vector<Op>> MakeGradList(const OpRegistry& ops, Program& program, const GradTargets& wanted,
                                     GradNames& grad_names);

}  // namespace penstock
