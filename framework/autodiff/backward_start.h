// Where a backward pass starts: from a loss, or from targets and their given gradients.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// Returns the last op that writes the loss. E-backward-loss: no op writes it, or its shape is not [1].
Result<OpId> FindLossOp(const Block& block, const std::string& loss);
// Makes the gradient of the loss: a single 1, on the device of `loss_op`.
Op LossGradient(const Op& loss_op, const std::string& loss, DType dtype);
// Makes a gradient of ones in the target's run-time shape, which a separate op determines.
std::vector<Op> OnesLike(const Program& program, const std::string& target);

// Checks that targets, inputs and given gradients are tensors of block 0, and that the given gradients match
// the targets in number and shape. Errors: E-gradients-none, -var, -count, -shape.
Status CheckGradients(const Program& program, const GradientsOptions& options);

}  // namespace penstock
