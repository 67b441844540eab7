// Counts what C++ code allocates, in binaries that link penstock_allocations: it replaces operator new.
#pragma once

#include <cstdint>

namespace penstock::test {

struct Allocations {
  std::uint64_t count = 0, bytes = 0;
};
// Of all threads, since the process began.
Allocations AllocationsSoFar();

// From here on, the allocations of this thread are counted, but for those that oneDNN makes inside.
void BeginCounting();
// How many they were.
std::int64_t EndCounting();

}  // namespace penstock::test
