// What a backward starts from: a loss, or targets and what the caller gives as their gradients.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/backward.h"

namespace penstock {

// The last op that writes the loss. Errors: E-backward-loss if there is none, or the loss's shape is not [1].
Result<OpId> FindLossOp(const Block& block, const std::string& loss);
// The gradient of the loss: one 1, made where `loss_op` runs.
Op LossGradient(const Op& loss_op, const std::string& loss, DType dtype);
// Ones, as many as the target has elements when the program runs: its shape is read by an op of its own.
std::vector<Op> OnesLike(const Program& program, const std::string& target);

// Targets, inputs and given gradients are tensors of block 0, as many as there must be, of shapes that fit.
// Errors: E-gradients-none, -var, -count, -shape.
Status CheckGradients(const Program& program, const GradientsOptions& options);

}  // namespace penstock
