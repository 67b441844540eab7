// The counters of a learning-rate schedule in asynchronous modes: each trainer has one, and their sum is the
// step of the schedule.
#pragma once

#include <vector>

#include "framework/ir/var.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

// One variable per trainer, declared like the schedule's own counter.
std::vector<Var> StepCounterVars(const plan::StepCounter& counter, const PassContext& context);
// The addresses of the pservers that run the op which advances the counter.
NameList ScheduledPservers(const plan::StepCounter& counter, const PassContext& context);

}  // namespace penstock::passes
