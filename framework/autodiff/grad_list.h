// The gradient ops of a loss as a list, not yet in the program: those of block 0 in the order they will stand
// in, last forward op first. Of an op that runs a block, the gradient of that block is made first, as a new
// block whose forward_block it is; it holds its ops, but declares no variables yet.
#pragma once

#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// Errors: as AppendBackward's. E-backward-overwritten: the gradient of an op in a block needs a value that
// nobody keeps.
Result<std::vector<Op>> MakeGradList(const OpRegistry& ops, Program& program, const BackwardOptions& options,
                                     GradNames& grad_names);

}  // namespace penstock
