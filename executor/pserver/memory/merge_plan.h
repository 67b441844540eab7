// How a block merges the trainers' gradients, if that is a sum with an optional factor: then the runtime can
// add them itself, one by one as they come, without keeping all of them.
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
  std::string output;           // the variable in which the rest of the block finds the merged gradient
  std::optional<float> factor;  // multiplies the sum, from the op's attribute; nullopt: no factor
  std::vector<OpId> replaces;   // ops of the block that need not run
};

// The plan for a block that receives `grads`, in the order in which they are added. nullopt if the block uses
// one of them in any other way than to add all in that order, or if the result is a variable of the block
// itself. A single trainer's gradient is itself the merged one, whatever the block does with it.
std::optional<MergePlan> FindMerge(const Program& program, int block, const std::vector<std::string>& grads);

}  // namespace penstock::pserver
