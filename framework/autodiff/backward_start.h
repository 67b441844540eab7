// Where a backward pass starts: from a loss, or from targets and their given gradients.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// The last op that writes the loss. Errors: E-backward-loss if there is none, or the loss's shape is not [1].
Result<OpId> FindLossOp(const Block& block, const std::string& loss);
// The gradient of the loss: one 1, made where `loss_op` runs.
Op LossGradient(const Op& loss_op, const std::string& loss, DType dtype);
// A gradient of ones in the target's run-time shape, which an op of its own reads.
std::vector<Op> OnesLike(const Program& program, const std::string& target);

// Checks that targets, inputs and given gradients are tensors of block 0, equal in number, of fitting shapes.
// Errors: E-gradients-none, -var, -count, -shape.
Status CheckGradients(const Program& program, const GradientsOptions& options);

}  // namespace penstock
