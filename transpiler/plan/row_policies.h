// The row policies that a program's lookups ask for (framework/text/row_policy.h).
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/text/row_policy.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// Of the lookups of this table in the main block; without a rule if none asks for one.
//
// kInvalidArgument: E-plan-row-policy (two lookups ask for different policies), E-text-syntax,
// E-row-policy-value.
Result<RowPolicy> RowPolicyOf(const Program& main, const std::string& table);

// kInvalidArgument E-plan-row-policy: a lookup asks for a policy of rows, and the plan does not shard its
// table by id, or Fluid's servers would serve it.
Status RequireRowPolicies(const Program& main, const PlacementPlan& plan);

}  // namespace penstock::plan
