// The counters of a learning-rate schedule where trainers do not step together: each trainer has one, and
// their sum is the step that the schedule is at.
#pragma once

#include <vector>

#include "framework/ir/var.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

// One variable a trainer, declared as the schedule's own counter is.
std::vector<Var> StepCounterVars(const plan::StepCounter& counter, const PassContext& context);
// The pservers that run the op which counts.
NameList ScheduledPservers(const plan::StepCounter& counter, const PassContext& context);

}  // namespace penstock::passes
