// Takes gradient ops out that do nothing for anybody.
#pragma once

#include <functional>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"

namespace penstock {

// Removes the ops whose outputs nobody needs, and those that read only gradients that nobody writes (then
// nobody writes theirs either: `no_grad` grows). An op that stays and reads such a gradient beside others
// gets zeros for it:
//
//   c@GRAD = fill_zeros_like(X=c)
//   (X@GRAD=x@GRAD) = lstm_grad(Hidden@GRAD=h@GRAD, Cell@GRAD=c@GRAD, ...)
std::vector<Op> RemoveNoGradBranches(std::vector<Op> grads, NameSet& no_grad, const GradNames& names);

// Removes what hangs together only with a gradient op that reads nothing of the forward ops nor of earlier
// gradient ops: such a part never gets a value. `known` are variables that exist beside those.
std::vector<Op> RemoveUnconnected(std::vector<Op> grads, const std::vector<OpEntry>& path,
                                  const NameSet& known);

// Of a sum, without the parts that nothing made: they would come in through an output of a block that the
// targets do not depend on.
void LeaveOutParts(Op& sum, const GradNames& names, const std::function<bool(const std::string&)>& is_there);

}  // namespace penstock
