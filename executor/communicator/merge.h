// Several gradients of one variable as one.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Variable one, Merge(std::move(gradients), MergeRule::kMean));
//
// kMean is right for every optimizer: the merged gradient is one of a larger batch. kSum is what the
// gradients would do one after the other, for an update that is linear in the gradient and keeps no state
// (sgd); Adam and its kin would take a step several times too long by it.
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/variable.h"

namespace penstock::communicator {

enum class MergeRule { kMean, kSum };

// At least one, all tensors of one shape or all rows of one table; one alone is returned as it is. Of tensors
// the sum is made in order, in the memory of the first, which nobody else has; rows are listed one after the
// other, which adds up. kUnimplemented E-communicator-merge: an element type other than f32 and f64.
Result<Variable> Merge(std::vector<Variable> gradients, MergeRule rule);

}  // namespace penstock::communicator
