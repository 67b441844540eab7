// Passes a group's memory to the processes of one host: rank 0 listens on a unix socket, all others
// connect.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Descriptor memory, JoinMemory(rendezvous, bytes));
//
// hello (rank, size, bytes) -> memory -> ready -> go. A rank for which this returns has locked its byte of
// the memory, and so have all others: from then on a missing lock means a dead process.
#pragma once

#include "executor/collective/shared_memory.h"
#include "executor/transport/descriptor.h"

namespace penstock::collective {

// Memory of `bytes` bytes. Errors as MakeSharedMemoryGroup.
Result<transport::Descriptor> JoinMemory(const SharedMemoryRendezvous& rendezvous, std::size_t bytes);

// Holds byte `rank` of the memory until this process ends or closes a descriptor of it.
bool LockRank(const transport::Descriptor& memory, int rank);
// Whether a process other than this one holds it.
bool IsRankLocked(const transport::Descriptor& memory, int rank);

}  // namespace penstock::collective
