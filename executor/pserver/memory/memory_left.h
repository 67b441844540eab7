// Checks, before it is needed, whether the process may still allocate memory. Under `ulimit -v` gRPC ends the
// process when one of its own allocations fails, so a server stops while there is memory left.
#pragma once

#include <cstddef>

namespace penstock::pserver {

// To start the server's threads and gRPC's: their stacks are address space that is hardly touched.
constexpr std::size_t kMemoryToStart = std::size_t{256} << 20;
// To read the next messages, and to tell trainers that the server ends.
constexpr std::size_t kMemoryToServe = std::size_t{64} << 20;

// False if the process limits (address space, data) leave less than `bytes`. Costs two system calls without
// limits, some microseconds with them. Allocates nothing.
bool MemoryLeft(std::size_t bytes);

// If address space is limited, makes threads that start later share the existing heaps. By default the C
// library reserves 64 MB of address space for each thread's heap, and gRPC starts many threads.
void ShareHeaps();

}  // namespace penstock::pserver
