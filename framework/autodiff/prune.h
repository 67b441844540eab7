// Removes gradient ops that have no effect.
#pragma once

#include <functional>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"

namespace penstock {

// Removes ops whose outputs are not needed, and ops that read only gradients that no op writes (their own
// outputs then count as unwritten too and join `no_grad`). An op that stays although it reads such a gradient
// gets zeros for it:
//
//   c@GRAD = fill_zeros_like(X=c)
//   (X@GRAD=x@GRAD) = lstm_grad(Hidden@GRAD=h@GRAD, Cell@GRAD=c@GRAD, ...)
std::vector<Op> RemoveNoGradBranches(std::vector<Op> grads, NameSet& no_grad, const GradNames& names);

// Removes ops connected only to a gradient op that reads nothing from the forward ops or from earlier
// gradient ops: such a part never gets a value. `known` are further variables that exist.
std::vector<Op> RemoveUnconnected(std::vector<Op> grads, const std::vector<OpEntry>& path,
                                  const NameSet& known);

// Removes from a sum the parts that no op makes: they would come through an output of a block that the
// targets do not depend on.
void LeaveOutParts(Op& sum, const GradNames& names, const std::function<bool(const std::string&)>& is_there);

}  // namespace penstock
