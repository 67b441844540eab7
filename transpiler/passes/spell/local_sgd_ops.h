// What both forms of local SGD are made of: ranks train alone, add up what each has learned since the last
// snapshot, and go on from the mean.
#pragma once

#include <vector>

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// The copy of a parameter as all ranks had it last.
Var SnapshotVar(const plan::RingUse& param);

// param = the sum over all ranks of (snapshot - param).
std::vector<Op> SumUpdateOps(const plan::RingUse& param);
// When the sums of all parameters are there: param = snapshot - sum / ranks; snapshot = param.
std::vector<Op> ApplyMeanUpdateOps(const plan::PlacementPlan& plan);

}  // namespace penstock::passes
