// Which ops compute the learning rates, beside those that the learning_rate_scheduler marked as its own.
//
//   lr.tmp = scale(X=counter) @lr_sched
//   lr = scale(X=lr.tmp) {scale=0.5}        `exponential_decay(...) * 0.5`: no mark, and computed from the
//                                           schedule alone, so pservers can run it
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Adds to analysis.lr_ops, which holds the marked ops, those without a mark that a rate depends on and the
// counters of steps that the user's program advances for it; keeps program order. Sets trainer_lr_ops (what
// other ops of a trainer read is computed there too) and step_counters.
//
// kInvalidArgument E-plan-rate: a rate depends on what only trainers have (a batch, a parameter, a gradient).
// Cost: linear in the ops of block 0, times the depth to which a schedule reads what later ops write.
Status CompleteSchedule(const OpRegistry& ops, const Program& main, Analysis& analysis);

}  // namespace penstock::plan
