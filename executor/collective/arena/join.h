// Passes a group's memory to the processes of one host: rank 0 listens on a unix socket, all others
// connect.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Descriptor memory, JoinMemory(rendezvous, bytes));
//
// Each connection carries four records: hello (rank, size, bytes) to rank 0, memory from it, ready to it, go
// from it. When JoinMemory returns, all ranks have locked their bytes of the memory: from then on a missing
// lock means a dead process.
#pragma once

#include "executor/collective/arena/shared_memory.h"
#include "executor/transport/descriptor.h"

namespace penstock::collective {

// Memory of `bytes` bytes. Errors as MakeSharedMemoryGroup.
Result<transport::Descriptor> JoinMemory(const SharedMemoryRendezvous& rendezvous, std::size_t bytes);

// Holds byte `rank` of the memory until this process ends or closes a descriptor of it.
bool LockRank(const transport::Descriptor& memory, int rank);
// Whether a process other than this one holds it.
bool IsRankLocked(const transport::Descriptor& memory, int rank);

}  // namespace penstock::collective
