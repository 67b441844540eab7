// A group of processes that mpirun (or a scheduler) has started together: messages over MPI, operations of
// ring_backend.h.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const MpiPlace place, PlaceInMpi());  // MPI_Init_thread, the first time
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeMpiGroup({.ranks = {0, 1, 2}, .number = 0}));
//
// MPI carries the messages, as Gloo does for a group over TCP, and uses the machines' best path: shared
// memory within a host, InfiniBand or TCP between hosts. Its collectives are not used, so the bytes are those
// of one process everywhere, a mismatch names the ranks instead of hanging them, and a wait can be ended.
//
// Costs: those of "net" in collective_group.h.
//
// Failures: a rank that fails or leaves tells the others (group_end.h). When a process dies, mpirun ends all
// others, so E-collective-peer-lost comes only from an MPI that reports lost processes.
//
// Waits poll MPI, with pauses of up to 50 us; one thread per group polls for notices every 2 ms. MPI_Finalize
// is called when the process ends, if MPI was initialised here; all processes of the job must end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// This process in MPI_COMM_WORLD: rank 0 of 1 unless mpirun has started it.
struct MpiPlace {
  int rank = 0, size = 1;
};
// kFailedPrecondition E-collective-mpi: MPI cannot be used by several threads, or does not start.
Result<MpiPlace> PlaceInMpi();

struct MpiRanks {
  std::vector<int> ranks;  // of MPI_COMM_WORLD, in the order of the group; must include this process
  int number = 0;          // of the ring, not negative; groups made at the same time need different numbers
  Nanoseconds report_after = observe::kReportAfter;  // of waits in operations; 0: no reports
  std::string trace_name = {};                       // of the group (queued_group.h)
};

// Blocks until all ranks have called it. kInvalidArgument E-collective-size: ranks; kUnavailable
// E-collective-join: MPI failed. Errors of PlaceInMpi.
Result<std::unique_ptr<CollectiveGroup>> MakeMpiGroup(const MpiRanks& ranks);

}  // namespace penstock::collective
