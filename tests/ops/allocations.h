// Counts what a piece of a test allocates, in binaries that link allocations.cc.
#pragma once

#include <cstdint>

namespace penstock::test {

// From here on, the allocations of this thread through operator new are counted, but for those that oneDNN
// makes inside.
void BeginCounting();
// How many they were.
std::int64_t EndCounting();

}  // namespace penstock::test
