// Merges several gradients of one variable into one.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Variable one, Merge(std::move(gradients), MergeRule::kMean));
//
// kMean suits every optimizer: the result is the gradient of a larger batch. kSum has the effect of applying
// the gradients one after the other, for an update that is linear in the gradient and keeps no state (sgd);
// for Adam and similar optimizers it makes a step several times too long.
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/variable.h"

namespace penstock::communicator {

enum class MergeRule { kMean, kSum };

// Takes at least one gradient, all tensors of one shape or all selected rows of one table; a single one is
// returned unchanged. Tensors are added in order, in the memory of the first, which must not be shared; rows
// are concatenated, which adds them up. kUnimplemented E-communicator-merge: neither f32 nor f64.
Result<Variable> Merge(std::vector<Variable> gradients, MergeRule rule);

}  // namespace penstock::communicator
