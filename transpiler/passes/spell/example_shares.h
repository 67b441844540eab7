// Trainers with unequal batches: what counts their examples.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::passes {

// What the loss whose gradient begins the backward pass is the mean of. E-pass-no-loss: nothing begins one;
// E-pass-uneven-loss: that is the gradient of no mean.
Result<std::string> CountedByLoss(std::string_view pass, const Program& program);

// Multiplies the loss's gradient by `scale` times this trainer's share of all trainers' examples, and
// declares plan::kRankLive, which says whether its examples count.
Result<Program> MultiplyLossGradientByShare(std::string_view pass, const Program& in, float scale);

}  // namespace penstock::passes
