// Groups whose ranks are threads of one process: for tests, and for several devices of one process.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto groups, MakeThreadGroups(4));
//   ... thread r:  groups[r]->AllReduce(...)
//
// Costs: those of "host" in collective_group.h.
#pragma once

#include <memory>
#include <vector>

#include "executor/collective/group/rank_names.h"
#include "executor/observe/report_times.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// Returns one group per rank, in rank order; each may be used and destroyed by a thread of its own.
// report_after: how long an operation waits before it reports the wait; 0: no reports. names: the ranks'
// numbers in errors and reports of operations.
// kInvalidArgument E-collective-size: not 1 to 256 ranks. kUnavailable E-collective-memory.
Result<std::vector<std::unique_ptr<CollectiveGroup>>> MakeThreadGroups(
    int ranks, Nanoseconds report_after = observe::kReportAfter, const RankNames& names = {});

}  // namespace penstock::collective
