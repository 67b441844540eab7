// Completes the updates of parameters with the ops whose results they read. Ops of the optimize role that
// belong to a parameter are already part of its update. They may read results of other ops, which then run on
// the pservers too: copies of the parameter that the forward pass makes, norms of the gradient, constants.
//
//   before = scale(X=w)                                             forward; joins the update of w
//   (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, ...)                   @optimize(w, w@GRAD)
//   part = scale(X=before) {scale=0.01}                             @optimize(w, w@GRAD)
//   then = elementwise_sub(X=w, Y=part)                             @optimize(w, w@GRAD)
//   w = assign(X=then)                                              @optimize(w, w@GRAD)
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Adds to each parameter's server_ops, in program order, the ops whose results they need and that depend on
// the parameter, its gradient or its state. Such an op leaves the trainer (Analysis::server_ops) if no
// other op of the trainer reads its results. Results that depend on none of these belong to the schedule:
// adds them to schedule_inputs. Corrects the gradient of a parameter whose first op names one that its
// optimizer does not read.
//
// kInvalidArgument E-plan-update-source: an update reads a value that only trainers have, another
// parameter, or state that the update of another parameter writes. E-plan-update-op: an op with blocks,
// random numbers or effects would have to run on pservers. Cost: linear in the ops of block 0.
Status CompleteUpdates(const OpRegistry& ops, const Program& main, Analysis& analysis);

}  // namespace penstock::plan
