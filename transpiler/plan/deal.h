// Assigns slices to pservers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// Assigns each slice to a pserver, according to the configuration. The rest of the plan must be complete:
// pservers, params with their slices, send_order, names. kInvalidArgument E-plan-dispatcher: the answer of
// the user's dispatcher has the wrong length or names no pserver. Also returns the dispatcher's own errors.
Status DealSlices(const TranspileConfig& config, PlacementPlan& plan);

// HashName: the same in every process, and for both directions, because the name is always that of the
// parameter's slice.
int PserverOfName(std::string_view name, int pservers);

// SizeBalanced: places the largest first, each on the pserver with the fewest bytes so far. Among equal
// sizes, the earlier is placed first; among equal loads, the earlier pserver is chosen. Returns one pserver
// per size.
std::vector<int> BalanceSizes(std::span<const std::int64_t> bytes, int pservers);

}  // namespace penstock::plan
