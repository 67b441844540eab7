// Removes gradient ops that have no effect.
#pragma once

#include <functional>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"

namespace penstock {

// Removes ops whose outputs are all in `no_grad`, and ops that read only gradients in `no_grad`; the outputs
// of a removed op are added to `no_grad`. If a remaining op reads such a gradient, adds an op that fills it
// with zeros:
//
//   c@GRAD = fill_zeros_like(X=c)
//   (X@GRAD=x@GRAD) = lstm_grad(Hidden@GRAD=h@GRAD, Cell@GRAD=c@GRAD, ...)
//
// The gradient of an array has no zeros: ops that run blocks take a missing one for zero.
std::vector<Op> RemoveNoGradBranches(std::vector<Op> grads, NameSet& no_grad, const GradNames& names,
                                     const std::function<bool(const std::string& var)>& is_array);

// Removes each gradient op that reads nothing from the forward ops or from earlier gradient ops, and the ops
// that depend only on it: they would never get a value. `known`: further variables that exist.
std::vector<Op> RemoveUnconnected(std::vector<Op> grads, const std::vector<OpEntry>& path,
                                  const NameSet& known);

// Removes from a sum the parts that no op writes. Such parts belong to an output of a block on which the
// targets do not depend. Does nothing for other ops.
void LeaveOutParts(Op& sum, const GradNames& names, const std::function<bool(const std::string&)>& is_there);

}  // namespace penstock
