// A group of processes of one host, over memory that rank 0 makes and passes to the others through a unix
// socket.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeSharedMemoryGroup(
//       {.rank = 1, .size = 4, .meeting_point = "job-5f3a/ring-0", .time_limit = 60s}));
//
// The memory has no name and the socket no file: the system frees both when the processes end, however they
// end. Each rank holds a lock on the memory, which the system releases with its process; so the others learn
// of a death even if a child that the process forked lives on. A process can hold at most one rank of a
// group.
//
// Costs: those of "host" in collective_group.h.
#pragma once

#include <memory>
#include <string>

#include "executor/collective/group/rank_names.h"
#include "executor/observe/report_times.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// What the ranks have agreed on beforehand.
struct SharedMemoryRendezvous {
  int rank = 0;
  int size = 1;
  // The same on all ranks, and used by no other group in the network namespace; 1 to 48 bytes.
  std::string meeting_point;
  Nanoseconds time_limit = std::chrono::seconds(120);  // until all ranks are there
  Nanoseconds report_after = observe::kReportAfter;    // of waits in operations; 0: no reports
  RankNames names;                                     // in errors and reports of operations
  std::string trace_name = {};                         // of the group (queued_group.h)
};

// Blocks until all ranks have called it. All ranks must run as the same user.
// kInvalidArgument   E-collective-size: rank or size, or the length of meeting_point
// kDeadlineExceeded  E-collective-join-late: names the ranks that did not come
// kUnavailable       E-collective-join: a rank disconnected, or claims an impossible rank;
//                    E-collective-memory; E-rpc-bind: meeting_point is taken
Result<std::unique_ptr<CollectiveGroup>> MakeSharedMemoryGroup(const SharedMemoryRendezvous& rendezvous);

}  // namespace penstock::collective
