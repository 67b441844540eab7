// Trainers with unequal batches: counts their examples and weights the loss's gradient.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::passes {

// Returns the variable of which the loss is the mean; its elements are the examples to count.
//
// E-pass-no-loss      no op starts a backward pass from a loss
// E-pass-uneven-loss  the loss is not a mean
Result<std::string> CountedByLoss(std::string_view pass, const Program& program);

// Multiplies the loss's gradient by `scale` times this trainer's share of all trainers' examples, unless an
// earlier rewriting did (plan/exchanged.h). Declares
// plan::kRankLive, which states whether its examples count.
Result<Program> MultiplyLossGradientByShare(std::string_view pass, const Program& in, float scale);

}  // namespace penstock::passes
