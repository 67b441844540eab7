// What all forms of local SGD are made of: ranks train alone, add up what each has learned since the last
// snapshot, and go on from the mean; of ranks with unequal batches, from the mean by their examples.
#pragma once

#include <vector>

#include "framework/ir/edit.h"
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

// The block in which parameters are averaged, with its own variables, and what it reads and writes in place.
// With on_uneven each update is multiplied by the rank's share of the examples since the last average, which
// are counted in plan::kRankExamples.
std::vector<std::string> FillAverageBlock(const plan::PlacementPlan& plan, const char* pass, BlockEdit& body);
// The name of that share, as an element type has it; declared and made by FillAverageBlock for those of the
// parameters.
std::string ShareName(DType dtype);

}  // namespace penstock::passes
