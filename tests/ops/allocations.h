// Counts what a piece of a test allocates, in binaries that link allocations.cc.
#pragma once

#include <cstdint>

#include "tests/support/op_harness.h"

namespace penstock::test {

// From here on, the allocations of this thread through operator new are counted, but for those that oneDNN
// makes inside.
void BeginCounting();
// How many they were.
std::int64_t EndCounting();
// For a test that runs a kernel again: how many that run makes goes to `allocations`.
inline SecondRun CountInto(std::int64_t& allocations) {
  return {BeginCounting, [&allocations] { allocations = EndCounting(); }};
}

}  // namespace penstock::test
