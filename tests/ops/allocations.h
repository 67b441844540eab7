// Counts what a kernel allocates when it runs again.
#pragma once

#include <cstdint>

#include "tests/support/allocations/allocations.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

// Stores the number of allocations of the second run in `allocations`.
inline SecondRun CountInto(std::int64_t& allocations) {
  return {BeginCounting, [&allocations] { allocations = EndCounting(); }};
}

}  // namespace penstock::test
