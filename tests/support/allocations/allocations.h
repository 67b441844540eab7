// Counts allocations of C++ code. A binary that links penstock_allocations has its operator new replaced.
#pragma once

#include <cstdint>

namespace penstock::test {

struct Allocations {
  std::uint64_t count = 0, bytes = 0;
};
// The allocations of all threads since the process started.
Allocations AllocationsSoFar();

// Starts counting the allocations of this thread, except those inside oneDNN.
void BeginCounting();
// Stops counting and returns the number of allocations.
std::int64_t EndCounting();

}  // namespace penstock::test
