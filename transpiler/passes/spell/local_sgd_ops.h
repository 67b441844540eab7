// The ops that all forms of local SGD share. Ranks train alone, sum their updates since the last snapshot,
// and continue from the mean; with unequal batches the mean is weighted by examples.
#pragma once

#include <vector>

#include "framework/ir/edit.h"
#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// The snapshot of a parameter: its last value common to all ranks.
Var SnapshotVar(const plan::RingUse& param);

// param = the sum over all ranks of (snapshot - param).
std::vector<Op> SumUpdateOps(const plan::RingUse& param);
// For all parameters, when all sums are complete: param = snapshot - sum / ranks; snapshot = param.
std::vector<Op> ApplyMeanUpdateOps(const plan::PlacementPlan& plan);

// Fills the block that averages parameters, declares its variables, and returns the outer variables that it
// reads and writes in place. With on_uneven each update is multiplied by the rank's share of the examples
// since the last average, which plan::kRankExamples counts.
std::vector<std::string> FillAverageBlock(const plan::PlacementPlan& plan, const char* pass, BlockEdit& body);
// The name of that share as a variable of the given element type. FillAverageBlock makes one for each element
// type of the parameters.
std::string ShareName(DType dtype);

}  // namespace penstock::passes
