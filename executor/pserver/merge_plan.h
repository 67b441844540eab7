// How a block merges the gradients that trainers send, where that is a sum and perhaps a factor: what the
// runtime can do itself, gradient by gradient as they come, without keeping all of them.
//
//   before  w@GRAD = sum(X=[w@GRAD.trainer_0, w@GRAD.trainer_1]) ; w@GRAD = scale(X=w@GRAD) {scale=0.5}
//           (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr)
//   plan    {output=w@GRAD, factor=0.5, replaces the first two ops}
//   after   (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/ir/program.h"

namespace penstock::pserver {

struct MergePlan {
  std::string output;           // the variable in which the rest of the block finds what is merged
  std::optional<float> factor;  // of the sum, as the op's attribute says; nothing: the sum as it is
  std::vector<OpId> replaces;   // ops of the block that need not run any more
};

// The plan for a block that gets `grads`, in the order in which they are added. Nothing if the block does
// anything else with one of them than to add all in that order, or if what it makes of them is a variable of
// its own. The gradient of a single trainer is what is merged, whatever the block does with it.
std::optional<MergePlan> FindMerge(const Program& program, int block, const std::vector<std::string>& grads);

}  // namespace penstock::pserver
