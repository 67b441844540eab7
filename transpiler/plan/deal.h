// Who gets which slice.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// Gives each slice its pserver, by the configuration. Needs all else of the plan: pservers, params with their
// slices, send_order, names. kInvalidArgument E-plan-dispatcher: what the user's dispatcher answered is of
// the wrong length or names no pserver; its own errors.
Status DealSlices(const TranspileConfig& config, PlacementPlan& plan);

// HashName: the same in every process and for both directions, since it is always the parameter's slice that
// is asked for.
int PserverOfName(std::string_view name, int pservers);

// SizeBalanced: the largest first, each to the pserver that has the fewest bytes so far. Of equal sizes the
// earlier is placed first; of equal loads the earlier pserver gets it. Returns one pserver for each size.
std::vector<int> BalanceSizes(std::span<const std::int64_t> bytes, int pservers);

}  // namespace penstock::plan
