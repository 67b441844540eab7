// Whether the process may still take memory, asked before it is needed. Under `ulimit -v` gRPC ends the
// process when an allocation of its own fails, so a server stops while there is some left.
#pragma once

#include <cstddef>

namespace penstock::pserver {

// What a server needs to start its threads and gRPC's: their stacks are address space that is hardly touched.
constexpr std::size_t kMemoryToStart = std::size_t{256} << 20;
// What it needs to read what comes next, and to tell its trainers that it ends.
constexpr std::size_t kMemoryToServe = std::size_t{64} << 20;

// False if the limits of the process (address space, data) leave less than `bytes`. Without limits it costs
// two system calls, with limits some microseconds. Takes nothing.
bool MemoryLeft(std::size_t bytes);

// Where address space is limited: threads that start from now on share the heaps that are there. By default
// the C library reserves 64 MB of address space for the heap of each thread, and gRPC starts many.
void ShareHeaps();

}  // namespace penstock::pserver
