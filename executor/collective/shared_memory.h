// A group whose ranks are processes of one host: through memory that rank 0 makes and hands to the others
// over a unix socket.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeSharedMemoryGroup(
//       {.rank = 1, .size = 4, .meeting_point = "job-5f3a/ring-0", .time_limit = 60s}));
//
// The memory has no name and the socket no file: the system takes both back when the processes end, however
// they do. Each rank holds a lock on the memory, which the system releases with its process; so the others
// learn of a death, also where a child that the process forked lives on. At most one rank of a group in a
// process.
#pragma once

#include <memory>
#include <string>

#include "executor/observe/report_times.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// What the ranks have agreed on before.
struct SharedMemoryRendezvous {
  int rank = 0;
  int size = 1;
  // The same on all ranks, used by no other group of the network namespace; 1 to 48 bytes.
  std::string meeting_point;
  Nanoseconds time_limit = std::chrono::seconds(120);  // until all ranks are there
  Nanoseconds report_after = observe::kReportAfter;    // of waits in operations; 0: none is
};

// Blocks until all ranks have called it. Ranks run as the same user.
// kInvalidArgument   E-collective-size: rank or size, or the length of meeting_point
// kDeadlineExceeded  E-collective-join-late: names the ranks that did not come
// kUnavailable       E-collective-join: a rank broke off, or says that it is another one than it can be;
//                    E-collective-memory; E-rpc-bind: meeting_point is taken
Result<std::unique_ptr<CollectiveGroup>> MakeSharedMemoryGroup(const SharedMemoryRendezvous& rendezvous);

}  // namespace penstock::collective
