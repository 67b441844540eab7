// Finds the ops that compute learning rates but do not have the lr_sched role, which learning_rate_scheduler
// gives to its own ops. Example: exponential_decay(...) * 0.5
//
//   lr.tmp = scale(X=counter) @lr_sched
//   lr = scale(X=lr.tmp) {scale=0.5}      depends on the schedule alone, so pservers can run it
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// analysis.lr_ops holds the ops with the role. Adds the ops without the role on which a rate depends, and the
// step counters that the user's program advances for it; keeps program order. Sets trainer_lr_ops (the
// schedule ops whose outputs other ops of a trainer read) and step_counters.
//
// kInvalidArgument E-plan-rate: a rate depends on values that only trainers have (a batch, a parameter, a
// gradient). Cost: linear in the ops of block 0, times the number of times that the schedule reads values
// which later ops write.
Status CompleteSchedule(const OpRegistry& ops, const Program& main, Analysis& analysis);

}  // namespace penstock::plan
